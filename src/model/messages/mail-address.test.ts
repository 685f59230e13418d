/** Mail addresses of webhooks: equal addresses have equal URLs, and everything that is not one plain address is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { destinationMistake } from '../webhook.ts';
import { mailUrl, readMailUrl } from './mail-address.ts';

const ACCEPTED: [url: string, address: string, canonical: string][] = [
  ['mailto:ops@example.org', 'ops@example.org', 'mailto:ops@example.org'],
  ['MAILTO:Ops@EXAMPLE.Org', 'Ops@example.org', 'mailto:Ops@example.org'],
  ['mailto:a%2Bb@example.org', 'a+b@example.org', 'mailto:a+b@example.org'],
  ['mailto:a%25b%3Fc%23@example.org', 'a%b?c#@example.org', 'mailto:a%25b%3Fc%23@example.org'],
  ['mailto:zoë@jõgeva.ee', 'zoë@xn--jgeva-dua.ee', 'mailto:zoë@xn--jgeva-dua.ee'],
  ['mailto:zo%C3%AB@xn--jgeva-dua.ee', 'zoë@xn--jgeva-dua.ee', 'mailto:zoë@xn--jgeva-dua.ee'],
  ['mailto:root@localhost', 'root@localhost', 'mailto:root@localhost'],
];

for (const [url, address, canonical] of ACCEPTED) {
  test(`${url} is ${address}`, () => {
    const found = readMailUrl(url);
    assert.ok(!('mistake' in found), JSON.stringify(found));
    assert.deepEqual([found.text, mailUrl(found)], [address, canonical]);
    assert.deepEqual(readMailUrl(canonical), found);
    assert.equal(destinationMistake(url), undefined);
  });
}

const REFUSED = [
  ...[
    'mailto:',
    'mailto:@example.org',
    'mailto:a@',
    'mailto:a',
    'mailto:a@b@example.org',
    'mailto:a b@example.org',
  ],
  ...[
    'mailto:a..b@example.org',
    'mailto:.a@example.org',
    'mailto:a.@example.org',
    'mailto:a@-x.org',
    'mailto:a@x..y',
  ],
  ...[
    'mailto:a@[127.0.0.1]',
    'mailto:a@127.0.0.1',
    'mailto:a@0x7f.1',
    'mailto:a@2130706433',
    'mailto:a@[IPv6:::1]',
  ],
  ...[
    'mailto:"a"@example.org',
    'mailto:%22a%40b%22@example.org',
    'mailto:a@b,c@d',
    'mailto:a@b;c@d',
    'mailto:A <a@b>',
  ],
  ...[
    'mailto:a@b?cc=c@d',
    'mailto:a@b#c',
    'mailto:a%@b',
    'mailto:a%0D%0ADATA@b',
    'mailto:a@b%0A',
    'mailto:a%00@b',
  ],
  ...[
    'mailto:a\u2028@b',
    'mailto:a\u202e@b',
    'mailto:a\ud800@b',
    `mailto:${'a'.repeat(65)}@b`,
    `mailto:${'ë'.repeat(33)}@b`,
  ],
  ...[
    `mailto:a@${'b'.repeat(64)}.org`,
    `mailto:a@${'b.'.repeat(127)}org`,
    'mailto:a@b/c',
    'mailto:<a@b>',
    'mailto://a@b',
  ],
];

for (const url of REFUSED) {
  test(`${JSON.stringify(url)} is refused`, () => {
    assert.match(destinationMistake(url) ?? '', /^`webhookUrl` .*Use |^`webhookUrl` .*Write /);
  });
}

test('nothing that is accepted can end a command or a header', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
      const found = readMailUrl(`mailto:${text}`);
      if ('mistake' in found) return;
      assert.match(found.text, /^[^\s<>"(),:;[\]\\@]+@[a-z0-9.-]+$/);
    }),
    { numRuns: 2_000 },
  );
});
