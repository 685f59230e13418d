/** Destinations as people write them, and the sentences about their mistakes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_RULE } from '../rule.ts';
import { destinationOf, destinationWords, maskedUrl } from './destination.ts';

const SLACK = 'https://hooks.slack.com/services/T0/B0/secret';
const DISCORD = 'https://discord.com/api/webhooks/1/secret';

test('the program is recognized by its address', () => {
  for (const [written, url, format] of [
    ['ops@example.org', 'mailto:ops@example.org', 'mail'],
    [' mailto:ops@example.org ', 'mailto:ops@example.org', 'mail'],
    [SLACK, SLACK, 'slack'],
    [DISCORD, DISCORD, 'discord'],
    ['https://canary.discord.com/api/webhooks/1/x', 'https://canary.discord.com/api/webhooks/1/x', 'discord'],
    [`${DISCORD}/slack`, `${DISCORD}/slack`, 'slack'],
    ['https://acme.webhook.office.com/x', 'https://acme.webhook.office.com/x', 'teams'],
    [
      'https://prod-1.westeurope.logic.azure.com:443/workflows/x',
      'https://prod-1.westeurope.logic.azure.com:443/workflows/x',
      'teams',
    ],
  ] as const) {
    assert.deepEqual(destinationOf(written), { url, format });
  }
  const own = 'https://chat.example.org/hooks/1';
  assert.deepEqual(
    destinationOf(own, 'slack'),
    { url: own, format: 'slack' },
    'Mattermost reads messages of Slack',
  );
});

test('a mistake says what to write instead', () => {
  for (const [written, format, mistake] of [
    [
      '',
      undefined,
      'must be a mail address or a URL, such as ops@example.org, https://hooks.slack.com/services/… or https://discord.com/api/webhooks/…, found ""',
    ],
    [
      '#ops',
      'slack',
      'must be the URL of an incoming webhook of Slack, such as https://hooks.slack.com/services/…, found "#ops"',
    ],
    [
      'https://example.org/x',
      undefined,
      'must say which program reads the messages, because example.org is not known',
    ],
    [DISCORD, 'slack', 'must be an address of Slack, but discord.com belongs to Discord'],
    ['ops@example.org', 'slack', 'must be a URL of Slack, found the mail address "ops@example.org"'],
    [SLACK, 'mail', `must be a mail address such as ops@example.org, found "${SLACK}"`],
    ['Ops <ops@example.org>', undefined, 'must be an address without a name. Use ops@example.org'],
    [
      'mailto:a@example.org?subject=x',
      undefined,
      'must end after the address, without "?" and "#". Use mailto:a@example.org',
    ],
    [
      'a@example.org,b@example.org',
      undefined,
      'must be a single address. Create a webhook for each address, or use the address of a list. Use a@example.org',
    ],
    [
      'https:hooks.slack.com',
      undefined,
      'must be an absolute http:// or https:// URL with a host and without spaces, or mailto: with one address',
    ],
  ] as const) {
    assert.deepEqual(destinationOf(written, format), { mistake });
  }
});

test('a list shows the address or the program, but no secret path', () => {
  assert.equal(destinationWords('mailto:ops@example.org', 'mail'), 'ops@example.org');
  assert.equal(destinationWords(SLACK, 'slack'), 'Slack (hooks.slack.com)');
  assert.equal(destinationWords('https://example.org/x', 'standard'), 'https://example.org/x');
});

test('masks what may be secret in a URL, and keeps the rest to the byte', () => {
  for (const [url, masked] of [
    ['HTTPS://A.test:8/x%20/../y', 'HTTPS://A.test:8/x%20/../y'],
    ['https://u:p@ss@a.test/x@y', 'https://***@a.test/x@y'],
    ['https://u@a.test?q', 'https://***@a.test?***'],
    ['https://a.test/?a=1&b==2=&&c&d=#e=1?f=2', 'https://a.test/?a=***&b=***&&***&d=***#***'],
    ['https://hooks.slack.com/services/T0/B0/x', 'https://hooks.slack.com/'],
    ['mailto:ada.lovelace@example.org', 'mailto:***@example.org'],
  ] as const) {
    assert.equal(maskedUrl(url, null), masked);
  }
  const rule = { ...DEFAULT_RULE, format: 'slack' } as const;
  assert.equal(maskedUrl('https://chat.example.org/hooks/secret', rule), 'https://chat.example.org/');
});
