/**
 * Freezes rows of this version of the tables for `test/operate/upgrade.test.ts`. Run it for every release. It starts a
 * service on an empty database, uses it for a while and kills it. The rows become a fixture that is never changed.
 * `node test/support/store/freeze-schema.ts [--program path/to/flowhook.js] [sqlite|postgres]`: with an older program it
 * freezes that program's version.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs, promisify } from 'node:util';
import pg from 'pg';
import { DRIVERS, type Driver } from '../../../src/store/migrations.ts';
import { makeDatabase } from '../postgres.ts';
import { type Received, startReceiver } from '../receiver.ts';
import { startServerProcess } from '../server-process.ts';
import { DIGESTS, digests, fileOf, LEFT, type Row, type Rows } from './frozen-schemas.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** Usage is counted with a delay of one minute. */
const COUNTED_MS = 120_000;

const { values, positionals } = parseArgs({
  options: { program: { type: 'string', default: join(ROOT, 'bin', 'flowhook.js') } },
  allowPositionals: true,
});
for (const driver of DRIVERS.filter((one) => positionals.length === 0 || positionals.includes(one))) {
  await freeze(driver);
}
// The digests of older versions are already frozen.
if (positionals.length === 0) await writeFile(DIGESTS, `${JSON.stringify(digests(), null, 2)}\n`);
// The PostgreSQL server ends with this process.
process.exit();

async function freeze(driver: Driver): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-freeze-'));
  const database = driver === 'postgres' ? await makeDatabase() : undefined;
  const path = join(directory, 'data', 'flowhook.db');
  try {
    const addresses = await live(directory, database?.url);
    const { version, rows } = database === undefined ? readSqlite(path) : await readPostgres(database.url);
    const lines: string[] = [];
    for (const [table, list] of rows) for (const row of list) lines.push(JSON.stringify({ table, row }));
    let text = `${lines.join('\n')}\n`.replaceAll(directory, LEFT.directory);
    for (const [found, name] of addresses) text = text.replaceAll(found, name);
    await writeFile(fileOf(driver, version), text);
    process.stderr.write(`${driver}: version ${version}, ${lines.length} rows\n`);
  } finally {
    await database?.drop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Uses all features of a service. Routes that an older program does not have fail without effect. Returns its URLs. */
async function live(directory: string, databaseUrl: string | undefined): Promise<[string, string][]> {
  const team = join(directory, 'workflows', 'default');
  await mkdir(team, { recursive: true });
  const put = (name: string, text: string) => writeFile(join(team, name), text);
  await put('people.yaml', 'name: People\nsource: { type: command, command: [cat, people.ndjson] }\n');
  await put('broken.yaml', "retries: { max: 0 }\nsource: { type: command, command: [sh, -c, 'exit 7'] }\n");
  await put('held.yaml', "source: { type: command, command: [sh, -c, 'exec sleep 600'] }\n");
  await put('pushed.yaml', 'source: { type: push }\n');
  await put('asleep.yaml', 'schedule: { every: 15m }\nsource: { type: command, command: [/bin/true] }\n');
  await put('people.ndjson', '{"id":1,"name":"Ada","email":"ada@example.com"}\n{"id":2,"name":"Grace"}\n');
  const good = await startReceiver();
  const bad = await startReceiver({ status: () => 500 });
  const settings = {
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: LEFT.key,
    FLOWHOOK_ENCRYPTION_KEY: LEFT.encryptionKey,
    ...(databaseUrl === undefined ? {} : { FLOWHOOK_DATABASE: databaseUrl }),
  };
  const server = await startServerProcess(settings, { program: values.program });
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(server.url + path, {
      method,
      headers: {
        'x-api-key': LEFT.key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { headers: response.headers, status: response.status, body: text === '' ? {} : JSON.parse(text) };
  };
  const subscribe = (workflowId: string, webhookUrl: string, events = ['*']) =>
    call('POST', '/v1/integrations/webhooks/subscribe', { workflowId, webhookUrl, events });
  const begun = new Date().toISOString();
  const ends = (count: number) => (received: readonly Received[]) =>
    received.filter(({ event }) => /^workflow_(finished|failed)$/.test(event.type)).length >= count;

  await subscribe('people', good.url);
  await subscribe('broken', good.url);
  await subscribe('people', bad.url, ['workflow_finished']);
  await subscribe('people', `${good.url}/gone`);
  await call('DELETE', `/v1/integrations/webhooks/unsubscribe?webhookUrl=${good.url}/gone`);
  await call('POST', '/v1/workflows/people/queue');
  await good.until(ends(1), 'the first run');
  await put('people.ndjson', '{"id":1,"name":"Ada Lovelace"}\n{"id":3,"name":"Edsger"}\n');
  await call('POST', '/v1/workflows/people/queue');
  await good.until(ends(2), 'the second run');
  await call('POST', '/v1/workflows/broken/queue');
  await good.until(ends(3), 'the third run');
  await bad.until((received) => received.length > 0, 'an attempt that fails');
  // Without `workflow_started`, because the last delivery of it is still waiting when the service is killed.
  const { body: all } = await call('POST', '/v1/integrations/webhooks', {
    webhookUrl: `${good.url}/all`,
    events: ['workflow_finished', 'workflow_data_change'],
    settings: { ordered: true, ratePerSecond: 100, headers: { 'x-frozen': 'yes' } },
  });
  const webhook = `/v1/integrations/webhooks/${all.id}`;
  await call('POST', `${webhook}/rotate`, { overlapHours: 24 });
  await call('POST', `${webhook}/test`);
  const key = { 'idempotency-key': 'frozen' };
  await call('POST', '/v1/workflows/pushed/push', [{ id: 'a', email: 'eve@example.com' }, { id: 'b' }], key);
  await call('POST', '/v1/workflows/pushed/erase', { email: 'eve@example.com', suppress: true });
  await good.until(ends(4), 'the push');
  const { body: replay } = await call('POST', `${webhook}/replay`, { since: begun, states: ['delivered'] });
  await waitUntil(async () => {
    const { status, body } = await call('GET', `${webhook}/replays/${replay.replay?.id}`);
    return status !== 200 || (body.state === 'done' && body.outcome.underWay === 0);
  });
  await call('POST', '/v1/workflows/asleep/pause');
  await call('PUT', '/v1/workflows/made', { source: { type: 'push' } });
  const { body: inspector } = await call('POST', '/v1/inspectors');
  await call('POST', new URL(inspector.url ?? '/', server.url).pathname, { hello: 'inspector' });
  const made = await call('POST', '/v1/keys', { name: 'made', scopes: ['read'] });
  await call('POST', `/v1/keys/${made.body.id}/rotate`, { overlapSeconds: 3_600 });
  await call('DELETE', `/v1/keys/${made.body.id}`);
  const command = (...words: string[]) =>
    promisify(execFile)(process.execPath, [values.program, ...words], {
      env: { PATH: process.env.PATH ?? '', ...settings },
    }).catch(() => undefined);
  await command('teams', 'set-quota', 'default', 'workflows', '50');
  await command('dashboard');
  const done = new Date().toISOString();
  await waitUntil(async () => {
    const { status, body } = await call('GET', '/v1/usage?by=hour');
    return status !== 200 || body.countedUntil > done;
  });
  const held = await call('POST', '/v1/workflows/held/queue', undefined, key);
  const job = `/v1/jobs/${held.headers.get('x-job-id')}`;
  await waitUntil(async () => (await call('GET', job)).body.state === 'running');
  await server.kill();
  await good.stop();
  await bad.stop();
  return [
    [new URL(good.url).origin, LEFT.receiver],
    [new URL(bad.url).origin, LEFT.receiver],
    [server.url, LEFT.service],
  ];
}

async function waitUntil(isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAt = Date.now() + COUNTED_MS;
  while (!(await isSo()) && Date.now() < giveUpAt) await new Promise((resolve) => setTimeout(resolve, 200));
}

function readSqlite(path: string): { version: number; rows: Rows } {
  const db = new DatabaseSync(path);
  const { user_version: version } = db.prepare('pragma user_version').get() as { user_version: number };
  const rows: Rows = new Map();
  const tables = db.prepare("select name from sqlite_schema where type = 'table' order by name").all();
  for (const { name } of tables as { name: string }[]) {
    rows.set(name, db.prepare(`select * from ${name}`).all() as Row[]);
  }
  db.close();
  return { version, rows };
}

async function readPostgres(url: string): Promise<{ version: number; rows: Rows }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const answers = async (sql: string) => (await client.query(sql)).rows;
  const rows: Rows = new Map();
  const names = await answers(
    "select tablename as name from pg_tables where schemaname = 'public' order by 1",
  );
  for (const { name } of names) {
    rows.set(
      name,
      (await answers(`select to_json(t) as row from ${name} t`)).map(({ row }) => row),
    );
  }
  const [{ version }] = await answers('select max(number) as version from schema_version');
  rows.delete('schema_version');
  await client.end();
  return { version, rows };
}
