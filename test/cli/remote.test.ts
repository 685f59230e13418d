/** Commands against a server: by URL and key, by a profile, and with an unreachable server. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { runCommand } from '../support/cli/commands.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';

let service: TestService;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-remote-'));
  service = await startService({
    workflows: {
      'default/people.yaml': `source: { type: command, command: [sh, -c, 'echo reading >&2; printf ''{"id":1}\\n{"id":2}\\n'' '] }\n`,
      'default/slow.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
      'default/inbox.yaml': 'source: { type: push }\nmode: upsert\n',
      'default/broken.yaml': 'source: { type: command, command: ["false"] }\nretries: { max: 0 }\n',
    },
  });
});

after(async () => {
  await service.stop();
  await rm(directory, { recursive: true, force: true });
});

function flowhook(args: string[], environment: Record<string, string> = {}, input = '') {
  const own = { XDG_CONFIG_HOME: join(directory, 'config'), ...environment };
  return runCommand(args, { directory, environment: own, input });
}

const there = () => ({ FLOWHOOK_URL: service.url, FLOWHOOK_KEY: service.key });

test('a job is run, followed and read on the server', async () => {
  const ran = await flowhook(['run', 'default/people', '--wait', '--logs'], there());
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^people version 1: 2 records, 2 added/);
  assert.match(ran.stderr, /reading/);
  assert.equal((await flowhook(['data', 'get', 'people'], there())).stdout, '{"id":"1"}\n{"id":"2"}\n');
  assert.equal(
    (await flowhook(['data', 'get', 'people', '--format', 'csv'], there())).stdout,
    'id\r\n1\r\n2\r\n',
  );
  assert.match((await flowhook(['data', 'versions', 'people'], there())).stdout, /^1 .* 2 records: \+2/);
  const changes = await flowhook(['data', 'changes', 'people', '--since', '0', '--json'], there());
  assert.equal(JSON.parse(changes.stdout).length, 2);
  const listed = await flowhook(['jobs', 'list', '--json', '--state', 'finished'], there());
  const [job] = JSON.parse(listed.stdout) as { id: string; team: string }[];
  assert.equal(job?.team, 'default');
  assert.match((await flowhook(['jobs', 'show', job?.id ?? ''], there())).stdout, /published +version 1/);
  assert.match((await flowhook(['jobs', 'logs', job?.id ?? ''], there())).stdout, /reading/);
  const events = ['events', 'list', '--after', '0', '--limit', '1000'];
  assert.match((await flowhook(events, there())).stdout, /^1 .* workflow_queued/);
  assert.match(
    (await flowhook(['workflows', 'list'], there())).stdout,
    /default\/people +command +version 1, 2 records/,
  );
});

test('exit codes are the same as on a database', async () => {
  assert.equal((await flowhook(['run', 'broken', '--wait'], there())).code, 1);
  assert.equal((await flowhook(['jobs', 'show', 'job_1'], there())).code, 3);
  assert.equal((await flowhook(['jobs', 'list'], { ...there(), FLOWHOOK_KEY: 'wrong' })).code, 4);
  assert.equal(
    (await flowhook(['jobs', 'list'], { ...there(), FLOWHOOK_URL: 'http://127.0.0.1:1' })).code,
    6,
  );
  const slow = await flowhook(['run', 'slow'], there());
  assert.equal((await flowhook(['run', 'slow'], there())).code, 5);
  assert.equal((await flowhook(['jobs', 'cancel', slow.stdout.trim()], there())).code, 0);
  assert.equal((await flowhook(['jobs', 'watch', slow.stdout.trim()], there())).code, 1);
  assert.equal((await flowhook(['workflows', 'pause', 'people'], there())).stdout, 'paused people\n');
  assert.equal((await flowhook(['run', 'people'], there())).code, 5);
  await flowhook(['workflows', 'resume', 'people'], there());
  for (const [args, sentence] of [
    [['jobs', 'list', '--url', 'ftp://x'], /--url/],
    [['jobs', 'list', '--url', service.url], /--key or FLOWHOOK_KEY/],
    [['jobs', 'list', '--url', service.url, '--data', 'x'], /Use only one of them/],
  ] as const) {
    const { code, stderr } = await flowhook([...args]);
    assert.equal(code, 2);
    assert.match(stderr, sentence);
  }
});

test('webhooks are subscribed, shown and unsubscribed on the server', async () => {
  const url = 'https://example.com/hook';
  const made = await flowhook(['webhooks', 'subscribe', 'people', url, '--events', 'job.finished'], there());
  const id = made.stdout.trim();
  assert.match(id, /^wh_/);
  assert.match(
    (await flowhook(['webhooks', 'list'], there())).stdout,
    /default\/people +active +job\.finished/,
  );
  assert.match((await flowhook(['webhooks', 'secret', id], there())).stdout, /^whsec_/);
  const set = await flowhook(['webhooks', 'set', id, '--rate', '5'], there());
  assert.match(set.stdout, /^rate +5 per second$/m, set.stderr);
  for (const [args, sentence] of [
    [['set', id, '--rate', 'fast'], /`ratePerSecond` must be a number/],
    [
      ['subscribe', 'people', 'http://127.0.0.1:1/', '--events', 'job.finishd'],
      /did you mean "job\.finished"\?/,
    ],
    [['rotate', id, '--overlap-hours', 'soon'], /--overlap-hours must be a number from 0 to 168/],
  ] as const) {
    const { code, stderr } = await flowhook(['webhooks', ...args], there());
    assert.equal(code, 2);
    assert.match(stderr, sentence);
  }
  const shown = (await flowhook(['webhooks', 'show', id], there())).stdout;
  assert.match(shown, /^rate +5 per second$/m, 'an invalid number does not remove the limit');
  assert.equal((await flowhook(['webhooks', 'unsubscribe', id, '--yes'], there())).code, 0);
  assert.equal((await flowhook(['webhooks', 'show', id], there())).code, 3);
});

test('deliveries are tested, shown and replayed on the server', async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const { url } = receiver;
  const ask = async (...args: string[]) => {
    const ended = await flowhook(['webhooks', ...args], there());
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout;
  };
  const id = (await ask('subscribe', url)).trim();
  assert.match(
    await ask('set', id, '--ordered', '--rate', '5', '--header', 'x-token: abc'),
    /rate +5 per second/,
  );
  assert.match(await ask('test', url, '--wait'), /^Delivered: the receiver returned 2/);
  const [delivery] = JSON.parse(await ask('deliveries', id, '--state', 'delivered', '--json')) as {
    id: string;
  }[];
  assert.match(await ask('deliveries', url), /delivered +webhook_test \(test\)/);
  const shown = await ask('delivery', delivery?.id ?? '', '--body');
  assert.ok(shown.includes(url) && shown.includes('"eventType": "webhook_test"'), shown);
  assert.match(await ask('replay', delivery?.id ?? '', '--wait'), /^Delivered/);
  const replay = ['replay', id, '--since', '2020-01-01T00:00Z', '--state', 'delivered', '--wait'];
  assert.match(await ask(...replay, '--yes'), / done: (\d) events? sent again: \1 arrived/);
  assert.match(
    await ask(...replay.slice(0, -1), '--dry-run'),
    /^The replay would send \d events?: \d delivered/,
  );
  const everywhere = async (...args: string[]) => {
    const ended = await flowhook(['deliveries', ...args], there());
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout;
  };
  const filter = ['--webhook', id, '--state', 'delivered', '--event', 'webhook_test', '--status', '2xx'];
  assert.match(await everywhere('list', ...filter, '--search', url), /delivered +webhook_test \(test\)/);
  assert.match(
    await everywhere('retry', ...filter, '--dry-run'),
    /would send \d events? to 1 webhook: \d delivered/,
  );
  assert.match(
    await everywhere('retry', ...filter, '--wait', '--yes'),
    /^rty_\w+ done: (\d) events? sent again: \1 arrived/,
  );
  assert.match(await everywhere('retry', delivery?.id ?? '', '--wait'), /^Delivered/);
  const found = await flowhook(['search', id, '--type', 'webhooks'], there());
  assert.match(found.stdout, new RegExp(`^webhooks +${id}`));
  const both = await flowhook(['deliveries', 'retry', delivery?.id ?? '', '--state', 'dead'], there());
  assert.equal(both.code, 2);
  assert.equal((await flowhook(['webhooks', 'test', 'https://example.com/no'], there())).code, 3);
  await ask('unsubscribe', url, '--yes');
});

test('records are imported, also compressed, and erased on the server', async () => {
  const text = '{"id":1,"email":"ada@example.com"}\n{"id":2}\n';
  await writeFile(join(directory, 'people.ndjson'), text);
  await writeFile(join(directory, 'more.csv.gz'), gzipSync('id\n3\n'));
  const first = await flowhook(['data', 'import', 'people.ndjson', '--workflow', 'inbox'], there());
  assert.match(first.stdout, /^version 1 of inbox: 2 records, 2 added/, first.stderr);
  const more = await flowhook(['data', 'import', 'more.csv.gz', '--workflow', 'inbox'], there());
  assert.match(more.stdout, /^version 2 of inbox: 3 records, 1 added/, more.stderr);
  const piped = ['data', 'import', '-', '--format', 'ndjson', '--workflow', 'inbox'];
  assert.match((await flowhook(piped, there(), '{"id":4}\n')).stdout, /^version 3 of inbox: 4 records/);
  const held = await flowhook(['data', 'export', '--email', 'ada@example.com'], there());
  assert.match(held.stdout, /^\{"team":"default","place":"record","workflowId":"inbox"/, held.stderr);
  assert.match(held.stderr, /entries found/);
  assert.equal((await flowhook(['data', 'export', '--email', 'nobody'], there())).code, 2);
  const erase = ['data', 'erase', '--email', 'ada@example.com'];
  assert.match((await flowhook(erase, there())).stderr, /Name it with --workflow/);
  const erased = await flowhook([...erase, '--workflow', 'inbox', '--yes'], there());
  assert.match(erased.stdout, /^1\trecord\tinbox$/m, erased.stderr);
  assert.doesNotMatch((await flowhook(['data', 'get', 'inbox'], there())).stdout, /ada/);
});

test('keys of the team are created, listed and revoked on the server', async () => {
  const made = await flowhook(['keys', 'create', '--scopes', 'read', '--expires-in', '2', '--json'], there());
  const { id, team } = JSON.parse(made.stdout) as { id: string; team: string };
  assert.equal(team, 'default');
  assert.match(
    (await flowhook(['keys', 'list'], there())).stdout,
    new RegExp(`^${id}  default .* read .*expires`, 'm'),
  );
  assert.equal((await flowhook(['keys', 'revoke', id, '--yes'], there())).stdout, `revoked ${id}\n`);
  const other = await flowhook(['keys', 'create', '--team', 'acme'], there());
  assert.equal(other.code, 2);
  assert.match(other.stderr, /the API key determines the team\. Omit --team/);
});

test('a profile is readable only by its owner, used where there is no database, and deleted by logout', async () => {
  const refused = await flowhook(['login', service.url, '--key', 'wrong']);
  assert.equal(refused.code, 4);
  const login = await flowhook(['login', service.url], {}, `${service.key}\n`);
  assert.equal(login.code, 0, login.stderr);
  assert.match(login.stdout, /^default +http.* team default, read/);
  const file = join(directory, 'config/flowhook/profiles.json');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const listed = await flowhook(['workflows', 'list']);
  assert.match(listed.stdout, /default\/people/);
  assert.match(listed.stderr, /^Using http/);
  assert.doesNotMatch((await flowhook(['profiles'])).stdout, new RegExp(service.key));
  assert.match((await flowhook(['jobs', 'list', '--profile', 'defalt'])).stderr, /Did you mean default\?/);
  assert.equal((await flowhook(['logout'])).code, 0);
  assert.equal((await flowhook(['workflows', 'list'])).code, 3);
});

test('a user without a home directory can use the server, but has no profiles', async () => {
  const homeless = { HOME: '', XDG_CONFIG_HOME: '' };
  assert.equal((await flowhook(['workflows', 'list'], { ...homeless, ...there() })).code, 0);
  assert.match((await flowhook(['profiles'], homeless)).stderr, /There are no profiles yet/);
  const login = await flowhook(['login', service.url], homeless, `${service.key}\n`);
  assert.equal(login.code, 2);
  assert.match(login.stderr, /this user has none. Set HOME or XDG_CONFIG_HOME/);
});
