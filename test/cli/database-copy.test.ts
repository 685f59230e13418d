/** `flowhook database copy`: the copy is compared row by row, and a server runs on it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { after, type TestContext, test } from 'node:test';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import { silentLogger } from '../../src/observe/log.ts';
import { countUsage } from '../../src/store/conformance/setup.ts';
import { copyTables } from '../../src/store/copy/copy.ts';
import { LEFT_BEHIND, MARKER, TABLES } from '../../src/store/copy/tables.ts';
import { openStore, openTables } from '../../src/store/open.ts';
import { type Ended, runCommand, startCommand } from '../support/cli/commands.ts';
import { makeDatabase } from '../support/postgres.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const directory = await mkdtemp(join(tmpdir(), 'flowhook-copy-'));
const source = join(directory, 'data', 'flowhook.db');
const receiver = await startReceiver();
const workflows = {
  'default/zebras.yaml': 'source: { type: push }\n',
  'default/people.yaml': `source:
  type: command
  command: [sh, -c, 'echo reading >&2; printf "%s\\n" "{\\"id\\":1,\\"name\\":\\"Ada 😀\\"}" "{\\"id\\":2,\\"email\\":\\"gone@example.com\\"}"']
`,
  'default/checked.yaml': `source:
  type: command
  command: [printf, '%s\\n', '{"id":1,"price":10}', '{"id":2,"price":-1}']
expect:
  fields:
    price: { min: 0 }
  otherwise: quarantine
`,
};
const { webhookId, secret, data } = await fill();
after(async () => {
  await receiver.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Uses every feature that writes rows, and stops the service. */
async function fill() {
  const service = await startService({ directory, workflows });
  // Creates the key.
  await service.call('GET', '/.well-known/webhook-signing-keys');
  const subscribed = await service.call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: receiver.url,
    events: ['workflow_finished'],
  });
  assert.equal(subscribed.status, 200);
  const [webhook] = await service.store.webhooks.list({
    teamId: service.team.id,
    workflowId: 'people',
    limit: 100,
  });
  const id = webhook?.id ?? '';
  await service.call('POST', '/v1/workflows/zebras/push', [{ id: 'z', stripes: 40 }]);
  await service.call('POST', '/v1/workflows/people/queue', undefined, { 'idempotency-key': 'once' });
  await receiver.until((received) => received.length === 1, 'the first run');
  // The server stores the result of a delivery shortly after it has arrived.
  for (let settled: unknown[] = []; settled.length === 0; ) {
    const list = await service.call('GET', `/v1/integrations/webhooks/${id}/deliveries?state=delivered`);
    settled = (list.body as { deliveries: unknown[] }).deliveries;
  }
  await service.call('POST', '/v1/workflows/people/erase', { email: 'gone@example.com', suppress: true });
  await service.call('POST', `/v1/integrations/webhooks/${id}/replay`, {
    since: new Date(0).toISOString(),
    states: ['delivered'],
  });
  await receiver.until((received) => received.length === 2, 'the replay');
  const checked = await service.call('POST', '/v1/workflows/checked/queue');
  const checkedId = checked.headers.get('x-job-id');
  for (let state = ''; state !== 'finished'; ) {
    const job = await service.call('GET', `/v1/jobs/${checkedId}`);
    state = String((job.body as { state: unknown }).state);
    assert.notEqual(state, 'failed', JSON.stringify(job.body));
  }
  const filtered = await service.call('POST', '/v1/integrations/webhooks', {
    workflowId: 'zebras',
    webhookUrl: receiver.url,
    events: ['workflow_data_change'],
    filter: 'record.stripes > 40',
    cooldown: '7d',
  });
  assert.ok(filtered.status < 300, JSON.stringify(filtered.body));
  await service.call('POST', '/v1/workflows/zebras/push', [{ id: 'z', stripes: 41 }]);
  await receiver.until((received) => received.length === 3, 'the message of a rule');
  const feed = await service.call('POST', '/v1/workflows/people/feeds', {});
  // The old address of the feed has ended.
  await service.call('POST', `/v1/workflows/people/feeds/${(feed.body as { id: string }).id}/rotate`);
  const told = await service.call('GET', `/v1/integrations/webhooks/${id}/secret`);
  const read = await fetch(`${service.url}/v1/workflows/people/data`, {
    headers: { 'x-api-key': service.key },
  });
  const found = { webhookId: id, secret: (told.body as { secret: string }).secret, data: await read.text() };
  await countUsage(service.store, { graceMs: 0, limit: 100 });
  await service.store.teams.setQuotas({ teamId: service.team.id, quotas: { workflows: 9, records: null } });
  await service.stop();
  return found;
}

function copy(from: string, to: string, ...more: string[]): Promise<Ended> {
  return runCommand(['database', 'copy', '--from', from, '--to', to, '--json', ...more], { directory });
}

async function copied(from: string, to: string, ...more: string[]) {
  const { code, stdout, stderr } = await copy(from, to, ...more);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as { rows: number; tables: { name: string; rows: number }[] };
}

/** Copies in this process, for tests that are not about the command. */
async function copyHere(from: string, to: string): Promise<void> {
  const reading = await openTables(from, { log: silentLogger, make: false });
  const writing = await openTables(to, { log: silentLogger, make: true });
  await copyTables({ source: reading, target: writing, force: false, onCopied: () => undefined });
  await Promise.all([reading.close(), writing.close()]);
}

/** Every row of every table, read without our code. Records are listed by the names of their workflows. */
function rowsOf(path: string): Record<string, string[]> {
  const db = new DatabaseSync(path, { readOnly: true });
  const tables = db.prepare("select name from sqlite_master where type = 'table'").all() as {
    name: string;
  }[];
  const all: Record<string, string[]> = {};
  for (const { name } of tables) {
    const sql =
      name === 'record'
        ? 'select team_id, w.id as workflow_id, r.* from record r join workflow w on w.number = r.workflow'
        : `select * from ${name}`;
    const rows = db.prepare(sql).all() as Record<string, unknown>[];
    all[name] = rows
      .map(({ workflow: _, ...row }) => JSON.stringify(name === 'workflow' ? { ...row, number: 0 } : row))
      .sort();
  }
  db.close();
  return all;
}

async function emptyPlace(t: TestContext): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'flowhook-copy-to-'));
  t.after(() => rm(place, { recursive: true, force: true }));
  return join(place, 'flowhook.db');
}

/** A copy of the source in another directory. */
async function backUp(place: string): Promise<void> {
  const db = new DatabaseSync(source, { readOnly: true });
  await backup(db, place);
  db.close();
}

async function emptyDatabase(t: TestContext): Promise<{ url: string; client: pg.Client }> {
  const { url, drop } = await makeDatabase();
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  t.after(async () => {
    await client.end();
    await drop();
  });
  return { url, client };
}

function open(url: string) {
  return openStore(url, { publicUrl: () => '', log: silentLogger, listen: false });
}

test('every table of both databases is either copied or skipped, and the source has rows in each', async (t) => {
  const { url, client } = await emptyDatabase(t);
  await (await open(url)).close();
  const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'");
  const copiedNames = TABLES.map(({ name }) => name).sort();
  assert.deepEqual(rows.map((row) => row.tablename).sort(), [...copiedNames, ...LEFT_BEHIND].sort());
  const found = rowsOf(source);
  const isCopied = (name: string) => !LEFT_BEHIND.includes(name);
  assert.deepEqual(Object.keys(found).filter(isCopied).sort(), copiedNames);
  for (const name of copiedNames) assert.ok((found[name] ?? []).length > 0, `${name} is empty`);
});

test('a copy to PostgreSQL and back has the same rows, and a server runs on it', async (t) => {
  const { url } = await emptyDatabase(t);
  const back = await emptyPlace(t);
  const before = rowsOf(source);
  const there = await copied(`sqlite:${source}`, url);
  assert.equal(there.rows, Object.values(before).flat().length);
  const home = await copied(url, `sqlite:${back}`);
  assert.deepEqual(home.tables, there.tables);
  assert.deepEqual(rowsOf(back), before);
  assert.deepEqual(rowsOf(source), before, 'the source has not changed');

  const key = readFileSync(join(directory, 'data', 'encryption.key'), 'utf8').trim();
  const service = await startService({
    directory,
    settings: { FLOWHOOK_DATABASE: url, FLOWHOOK_ENCRYPTION_KEY: key },
  });
  try {
    const headers = { 'x-api-key': service.key };
    const read = await fetch(`${service.url}/v1/workflows/people/data`, { headers });
    assert.equal(await read.text(), data);
    const had = receiver.received.length;
    const queued = await service.call('POST', '/v1/workflows/people/queue');
    assert.equal(queued.status, 200);
    await receiver.until((received) => received.length > had, 'a run on PostgreSQL');
    const told = receiver.received.at(-1);
    assert.equal(told?.event.jobId, queued.headers.get('x-job-id'));
    new Webhook(secret).verify(told?.text ?? '', told?.headers as Record<string, string>);
    const mine = await service.call('GET', `/v1/integrations/webhooks/${webhookId}`);
    assert.equal(mine.status, 200);
  } finally {
    await service.stop();
  }
});

test('a file is copied to another file, but not into a database with data', async (t) => {
  const to = await emptyPlace(t);
  await copied(`sqlite:${source}`, `sqlite:${to}`);
  assert.deepEqual(rowsOf(to), rowsOf(source));
  const again = await copy(`sqlite:${source}`, `sqlite:${to}`);
  assert.equal(again.code, 5);
  assert.match(again.stderr, /not empty: its table instance has rows/);
});

test('characters that PostgreSQL cannot store become U+FFFD, and the comparison succeeds', async (t) => {
  const { url, client } = await emptyDatabase(t);
  const from = await emptyPlace(t);
  await backUp(from);
  const db = new DatabaseSync(from);
  db.exec("update attempt set response = 'a' || char(0) || 'b'");
  db.close();
  await copyHere(`sqlite:${from}`, url);
  const { rows } = await client.query('select distinct response from attempt');
  assert.deepEqual(rows, [{ response: 'a\ufffdb' }]);
});

/** A source with several pages of records: 3,000 more. */
async function sourceOfPages(t: TestContext): Promise<string> {
  const path = await emptyPlace(t);
  await backUp(path);
  const db = new DatabaseSync(path);
  db.exec(`
    with recursive n (i) as (select 100 union all select i + 1 from n where i < 3099)
    insert into record (workflow, seq, added_in, id, body)
    select number, i, 1, 'many' || i, '{"id":"many' || i || '"}' from n join workflow where id = 'zebras'`);
  db.close();
  return path;
}

/** Starts a copy and kills it in the second page of records, where a trigger waits for a lock. */
async function killedCopy(from: string, url: string, client: pg.Client): Promise<void> {
  await client.query(`
    create function stop() returns trigger language plpgsql as $$
      begin
        if (select count(*) from record) > 1000 then perform pg_advisory_xact_lock(1); end if;
        return null;
      end $$;
    create trigger stop after insert on record execute function stop();
    select pg_advisory_lock(1)`);
  const { process: child } = startCommand(['database', 'copy', '--from', from, '--to', url], { directory });
  const ended = once(child, 'exit');
  const waiting = "from pg_locks where locktype = 'advisory' and not granted";
  await until('the copy waits', async () => {
    assert.equal(child.exitCode, null, 'it ended before it could be killed');
    return (await client.query(`select 1 ${waiting}`)).rowCount;
  });
  child.kill('SIGKILL');
  await ended;
  // The connection would notice the end of the process only when it gets the lock.
  await client.query(`select pg_terminate_backend(pid, 10000) ${waiting}`);
  await client.query('drop function stop cascade; select pg_advisory_unlock(1)');
}

test('a server does not start on an interrupted copy, and the copy does not count as empty', async (t) => {
  const { url, client } = await emptyDatabase(t);
  await (await open(url)).close();
  const from = await sourceOfPages(t);
  await killedCopy(`sqlite:${from}`, url, client);
  await assert.rejects(open(url), /database is an unfinished copy/);
  const again = await copy(`sqlite:${from}`, url);
  assert.equal(again.code, 5);
  assert.match(again.stderr, /contains an unfinished copy. Create the target again/);
  const anew = await emptyDatabase(t);
  const { rows } = await copied(`sqlite:${from}`, anew.url);
  assert.equal(rows, Object.values(rowsOf(from)).flat().length);
  await (await open(anew.url)).close();
  const back = await emptyPlace(t);
  await copyHere(anew.url, `sqlite:${back}`);
  assert.deepEqual(rowsOf(back), rowsOf(from));
});

test('a copy with one wrong letter is detected, and a server does not start on it', async (t) => {
  const { url, client } = await emptyDatabase(t);
  await (await open(url)).close();
  await client.query(`
    create function miswrite() returns trigger language plpgsql as $$
      begin new.body = replace(new.body, 'z', 'Z'); return new; end $$;
    create trigger miswrite before insert on record for each row when (new.id = 'z') execute function miswrite()`);
  const { code, stderr } = await copy(`sqlite:${source}`, url);
  assert.equal(code, 1);
  assert.match(stderr, /The copy of the table record differs from the source/);
  await assert.rejects(open(url), /database is an unfinished copy/);
});

test('a database that is in use, old, or an unfinished copy is not copied', async (t) => {
  const { url, client } = await emptyDatabase(t);
  const [to, other] = [await emptyPlace(t), await emptyPlace(t)];
  const service = await startService({ directory, workflows });
  const served = await copy(`sqlite:${source}`, url);
  await service.stop();
  assert.equal(served.code, 5);
  assert.match(served.stderr, /in use by another flowhook server/);

  await copyHere(`sqlite:${source}`, url);
  await client.query(`insert into chore values ('c', 'node_x', extract(epoch from now()) * 1000 + 60000)`);
  const leased = await copy(url, `sqlite:${to}`);
  assert.equal(leased.code, 5);
  assert.match(leased.stderr, /Nodes are using the database .*--force/);
  await copied(url, `sqlite:${to}`, '--force');
  assert.deepEqual(rowsOf(to), rowsOf(source));

  await client.query('insert into instance values ($1, $2)', [MARKER, '{}']);
  const unfinished = await copy(url, `sqlite:${other}`, '--force');
  assert.match(unfinished.stderr, /--from: This database is an unfinished copy/);
  const db = new DatabaseSync(to);
  db.exec('pragma user_version = 1');
  db.close();
  const old = await copy(`sqlite:${to}`, url);
  assert.equal(old.code, 5);
  assert.match(old.stderr, /--from is at version 1,.*`flowhook migrate up`/s);
  const missing = await copy(`sqlite:${join(directory, 'nothing.db')}`, url);
  assert.equal(missing.code, 3);
});
