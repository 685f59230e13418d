/** Webhooks for people on the command line: mail, Slack, Discord and Teams, digests and zones, and mistakes with them. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { makePlace, type Place } from '../support/cli/place.ts';

const SLACK = 'https://hooks.slack.com/services/T0/B0/secret';
const DISCORD = 'https://discord.com/api/webhooks/1/secret';
const FOR_PEOPLE = ['workflow_data_change', 'workflow_failed'];
const TEAMS = 'https://acme.webhook.office.com/x';

let place: Place;
before(async (t) => {
  place = await makePlace(t as never, { 'default/shop.yaml': 'source: { type: push }\n' });
  // Nothing listens there: the mail that confirms the address cannot be sent.
  place.environment.FLOWHOOK_SMTP_URL = 'smtp://127.0.0.1:1';
  place.environment.FLOWHOOK_MAIL_FROM = 'flowhook@example.org';
});

const webhooks = (...args: string[]) => place.run('webhooks', ...args);
async function created(...args: string[]) {
  const { code, stdout, stderr } = await webhooks(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('a flag names the destination; people receive changes and failures, unless they choose events', async () => {
  for (const [args, expected] of [
    [
      ['shop', '--mail', 'ops@example.org'],
      { url: 'mailto:ops@example.org', format: 'mail', events: FOR_PEOPLE },
    ],
    [['shop', '--slack', SLACK], { url: SLACK, format: 'slack', events: FOR_PEOPLE }],
    [['shop', '--discord', DISCORD, '--digest', '90m'], { format: 'discord', digest: { every: '90m' } }],
    [
      ['--all', '--teams', TEAMS, '--digest', '08:00', '--time-zone', 'Europe/Zurich'],
      {
        workflowId: null,
        format: 'teams',
        digest: { at: '08:00', timeZone: 'Europe/Zurich' },
        timeZone: null,
      },
    ],
    [
      ['--all', '--slack', SLACK, '--time-zone', 'Asia/Tokyo', '--events', 'job.failed'],
      { format: 'slack', digest: null, timeZone: 'Asia/Tokyo', events: ['job.failed'] },
    ],
    [
      ['shop', 'https://example.org/hook', '--digest', '1h'],
      { format: 'standard', digest: { every: '1h' }, events: ['*'] },
    ],
    [['shop', 'mailto:list@example.org'], { format: 'mail', url: 'mailto:list@example.org' }],
    [
      ['--all', 'https://chat.example.org/1', '--format', 'slack', '--time-zone', 'Asia/Tokyo'],
      { format: 'slack' },
    ],
  ] as const) {
    const webhook = await created('subscribe', ...args);
    assert.deepEqual(
      Object.fromEntries(Object.keys(expected).map((name) => [name, webhook[name]])),
      expected,
    );
  }
});

test('a mail address waits for its reader, and is named by the address', async () => {
  const { code, stdout, stderr } = await webhooks('show', 'ops@example.org');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^state +paused$/m);
  assert.match(stdout, /^reason +The address is not verified/m);
  assert.match(stdout, /^format +mail$/m);
});

test('`verify` sends the mail again, and says why that fails', async () => {
  const { code, stderr } = await webhooks(
    'verify',
    (await created('subscribe', '--all', '--mail', 'dev@example.org')).id,
  );
  assert.equal(code, 1);
  assert.match(stderr, /The verification mail could not be sent.*The connection was refused/);
});

test('the list shows where messages go and when, but no secret path', async () => {
  const { stdout } = await webhooks('list');
  assert.match(stdout, /ops@example\.org/);
  assert.match(stdout, /Slack \(hooks\.slack\.com\)/);
  assert.match(stdout, /Teams \(acme\.webhook\.office\.com\) +08:00 Europe\/Zurich/);
  assert.match(stdout, /Discord \(discord\.com\) +90m/);
  assert.doesNotMatch(stdout, /secret/);
});

test('`notify` subscribes people to what breaks in any workflow', async () => {
  const notices = await created('notify', SLACK);
  const { workflowId, events, name, format } = notices;
  assert.deepEqual(
    [workflowId, events, name, format],
    [
      null,
      ['workflow_failed', 'workflow_stale', 'workflow_recovered', 'webhook_failing', 'webhook_paused'],
      'When something breaks',
      'slack',
    ],
  );
  assert.equal((await created('notify', SLACK, '--digest', '1h')).id, notices.id, 'the same call changes it');
  assert.deepEqual(
    (await created('notify', 'ops@example.org', '--name', 'Ops')).url,
    'mailto:ops@example.org',
  );
  const own = await created('notify', 'https://chat.example.org/2', '--format', 'slack');
  assert.equal(own.format, 'slack');
});

test('`set` changes and removes a digest and a zone', async () => {
  const { id } = await created('subscribe', 'shop', '--discord', `${DISCORD}2`);
  const set = async (...args: string[]) => {
    const { digest, timeZone } = await created('set', id, ...args);
    return [digest, timeZone];
  };
  assert.deepEqual(await set('--digest', '1h', '--time-zone', 'Asia/Tokyo'), [{ every: '1h' }, 'Asia/Tokyo']);
  assert.deepEqual(await set('--digest', '07:30'), [{ at: '07:30', timeZone: 'UTC' }, 'Asia/Tokyo']);
  const shown = (await webhooks('show', id)).stdout;
  assert.match(shown, /^digest +07:30 UTC$/m);
  assert.match(shown, /^times in +Asia\/Tokyo$/m);
  assert.deepEqual(await set('--no-digest', '--no-time-zone'), [null, null]);
});

for (const [mistake, args, says] of [
  [
    'no destination',
    ['subscribe'],
    'The destination is missing: pass a URL, or --mail, --slack, --discord or --teams',
  ],
  [
    'only a workflow',
    ['subscribe', 'shop'],
    /^The URL is missing: .* To write to people, use --mail, --slack, /,
  ],
  [
    'a bare address',
    ['subscribe', 'shop', 'ops@example.org'],
    '"ops@example.org" is a mail address: use --mail ops@example.org',
  ],
  [
    'no workflow',
    ['subscribe', '--mail', 'ops@example.org'],
    'Name a workflow, or pass --all for all workflows of the team',
  ],
  [
    'both',
    ['subscribe', 'shop', '--all', '--slack', SLACK],
    '--all means all workflows: omit --all, or the workflow shop',
  ],
  [
    'another program',
    ['subscribe', 'shop', '--slack', DISCORD],
    '--slack must be an address of Slack, but discord.com belongs to Discord. Use --discord',
  ],
  [
    'a channel',
    ['subscribe', 'shop', '--slack', '#ops'],
    '--slack must be the URL of an incoming webhook of Slack, such as https://hooks.slack.com/services/…, found "#ops"',
  ],
  [
    'a name',
    ['subscribe', 'shop', '--mail', 'Ops <ops@example.org>'],
    '--mail must be an address without a name. Use ops@example.org',
  ],
  [
    'two addresses',
    ['subscribe', 'shop', '--mail', 'a@example.org,b@example.org'],
    /^--mail must be a single address\. Create a webhook for each address, .* Use a@example\.org$/,
  ],
  [
    'two programs',
    ['subscribe', 'shop', '--slack', SLACK, '--discord', DISCORD],
    'A webhook has one destination: use --slack or --discord, and run the command again for the other',
  ],
  [
    'two destinations',
    ['subscribe', 'shop', SLACK, '--slack', SLACK],
    `A webhook has one destination, which a flag names: omit ${SLACK}`,
  ],
  [
    'a chat as a program',
    ['subscribe', 'shop', SLACK],
    `Slack reads only its own messages: use --slack ${SLACK}, or --template for messages of your own`,
  ],
  [
    'a format twice',
    ['subscribe', 'shop', '--slack', SLACK, '--format', 'standard'],
    '--slack sets the form of the messages: omit --format',
  ],
  [
    'mail to a URL',
    ['subscribe', 'shop', 'https://example.org', '--format', 'mail'],
    'Mail is sent to an address: use --mail ops@example.org instead of the URL and --format',
  ],
  [
    'a short time',
    ['subscribe', 'shop', '--slack', SLACK, '--digest', '8:00'],
    '--digest must be a period from 1m to 7d such as 1h, or a time of day such as 08:00, found "8:00". Did you mean 08:00?',
  ],
  [
    'a short period',
    ['set', 'wh_1', '--digest', '30s'],
    '--digest must be a period from 1m to 7d such as 1h, or a time of day such as 08:00, found "30s"',
  ],
  [
    'a city',
    ['notify', SLACK, '--digest', '08:00', '--time-zone', 'Zurich'],
    '--time-zone must be a time zone such as Europe/Berlin or UTC, found "Zurich"; did you mean "Europe/Zurich"?',
  ],
  [
    'a zone for programs',
    ['subscribe', 'shop', 'https://example.org', '--time-zone', 'UTC'],
    /^--time-zone needs a time of day such as --digest 08:00, or messages for people/,
  ],
  [
    'a digest and a cooldown',
    ['set', 'wh_1', '--digest', '1h', '--cooldown', '6h'],
    'A digest already gathers what happens to a record: omit --cooldown, or --digest',
  ],
  [
    'an unknown chat',
    ['notify', 'https://example.org/x'],
    'The destination must say which program reads the messages, because example.org is not known: add --format slack, discord or teams',
  ],
] as const) {
  test(`a mistake says what to write instead: ${mistake}`, async () => {
    const { code, stderr } = await webhooks(...args);
    const sentence = stderr.trim().replace(/^flowhook: /, '');
    if (typeof says === 'string') assert.equal(sentence, says);
    else assert.match(sentence, says);
    assert.equal(code, 2);
  });
}
