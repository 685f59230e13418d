/** Migrations: concurrency, backups and refusals. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { EXPECT_NOTHING } from '../../model/quality/expect.ts';
import { silentLogger } from '../../observe/log.ts';
import { listBackups } from '../backup-files.ts';
import { HOLDER } from '../conformance/sending.ts';
import { MIGRATIONS } from '../migrations.ts';
import { openStore } from '../open.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { takeOwnership } from './owner.ts';

let root: string;
let path: string;
let directory: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'flowhook-migrate-'));
  path = join(root, 'flowhook.db');
  directory = join(root, 'migrations');
  await mkdir(directory);
  await writeFile(
    join(directory, '0001_one.sql'),
    `create table one (x {text}); insert into one values ('kept');`,
  );
});
afterEach(() => rm(root, { recursive: true }));

const run = (changes: { directory?: string; own?: boolean } = {}) =>
  migrate({ path, log: silentLogger, now: Date.UTC(2026, 0, 1), ...changes });

/** The schema version and the tables of a file. */
function schemaOf(file: string): { version: number; tables: string[] } {
  const db = new Database(file);
  const version = db.get<{ user_version: number }>('pragma user_version')?.user_version ?? 0;
  const tables = db.all<{ name: string }>(
    `select name from sqlite_schema where type = 'table' order by name`,
  );
  db.close();
  return { version, tables: tables.map((table) => table.name) };
}

test('creates the tables of this version, and changes nothing when run again', () => {
  run();
  const made = schemaOf(path);
  assert.ok(made.version >= 1);
  assert.ok(made.tables.includes('job'));
  run();
  assert.deepEqual(schemaOf(path), made);
});

test('runs only pending migrations and backs up the database first', async () => {
  run({ directory });
  await writeFile(join(directory, '0002_two.sql'), 'create table two (x {text});');
  await writeFile(join(directory, 'README.md'), 'not a migration');
  run({ directory });
  assert.deepEqual(schemaOf(path), { version: 2, tables: ['one', 'two'] });
  const [copy, ...more] = listBackups(join(root, 'backups'));
  assert.deepEqual([copy?.name, more.length], ['flowhook-2026-01-01T000000Z-v1-migration.db', 0]);
  assert.deepEqual(schemaOf(copy?.file ?? ''), { version: 1, tables: ['one'] });
});

test('rolls back a migration that fails halfway', async () => {
  run({ directory });
  await writeFile(
    join(directory, '0002_two.sql'),
    'create table two (x {text}); insert into nothing values (1);',
  );
  assert.throws(() => run({ directory }), /nothing/);
  assert.deepEqual(schemaOf(path), { version: 1, tables: ['one'] });
});

test('changes nothing under a running server, unless it is that server', async () => {
  run({ directory });
  await writeFile(join(directory, '0002_two.sql'), 'create table two (x {text});');
  const server = takeOwnership(path);
  assert.throws(() => run({ directory }), /in use by another flowhook server/);
  assert.equal(schemaOf(path).version, 1);
  run({ directory, own: true });
  assert.equal(schemaOf(path).version, 2);
  await writeFile(join(directory, '0003_three.sql'), 'create table three (x {text});');
  server.release();
  run({ directory });
  assert.equal(schemaOf(path).version, 3);
  takeOwnership(path).release();
});

test('refuses a schema that is newer than the code, and does not change it', async () => {
  await writeFile(join(directory, '0002_two.sql'), 'create table two (x {text});');
  run({ directory });
  await rm(join(directory, '0002_two.sql'));
  assert.throws(() => run({ directory }), /schema version 2.*versions up to 1.*newer flowhook/);
  assert.deepEqual(schemaOf(path), { version: 2, tables: ['one', 'two'] });
});

test('several processes can create one database at the same time', async () => {
  const script = `
    import { migrate } from ${JSON.stringify(new URL('./migrate.ts', import.meta.url).href)};
    import { silentLogger } from ${JSON.stringify(new URL('../../observe/log.ts', import.meta.url).href)};
    process.stdin.once('data', () => {
      migrate({ path: ${JSON.stringify(path)}, log: silentLogger, now: 0 });
      process.exit(0);
    });
    console.log('ready');`;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  await Promise.all(children.map((child) => once(child.stdout, 'data')));
  const exits = children.map((child) => once(child, 'exit'));
  for (const child of children) child.stdin.end('go');
  for (const exit of exits) assert.deepEqual(await exit, [0, null]);
  assert.ok(schemaOf(path).tables.includes('job'));
});

test('migrates a database of version 1 with all its rows', async () => {
  const frozen = join(root, 'frozen');
  await mkdir(frozen);
  const first = '0001_initial.sql';
  await copyFile(join(MIGRATIONS, first), join(frozen, first));
  run({ directory: frozen });
  plantVersion1();

  const store = await openStore(`sqlite:${path}`, {
    clock: () => 10_000,
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
    own: true,
  });
  try {
    const [odd, people] = await store.workflows.list({ teamId: 't', limit: 100 });
    const { guards, ...others } = DEFINITION;
    assert.deepEqual(people?.definition, {
      ...others,
      // Versions before expectations stored `guards`.
      expect: { ...EXPECT_NOTHING, records: { ...EXPECT_NOTHING.records, min: guards.minRecords } },
      source: { ...COMMAND, streams: null, config: null },
      schedule: null,
      priority: 0,
      limits: { timeoutMs: 1, records: 2, memoryBytes: 512_000_000, outputBytes: 2_000_000_000 },
    });
    assert.deepEqual([people?.nextRunAt, odd?.pausedAt, odd?.definition.source], [null, 5, MODULE]);
    const jobs = await store.jobs.list({ teamId: 't', limit: 10 });
    assert.deepEqual(
      jobs.map(({ id, state, priority, cancelRequestedAt, progress }) => [
        id,
        state,
        priority,
        cancelRequestedAt,
        progress,
      ]),
      [
        ['job_4', 'queued', 0, null, null],
        ['job_3', 'finished', 0, null, null],
        ['job_2', 'running', 0, null, null],
        ['job_1', 'queued', 0, null, null],
      ],
    );
    const claim = { nodeId: 'n', limit: 10, leaseMs: 1, perTeam: 10 };
    assert.deepEqual(await claimed(), ['job_4'], 'the job of the paused workflow is not claimed');
    await store.workflows.resume({ teamId: 't', id: 'odd', nextRunAt: null });
    assert.deepEqual(await claimed(), ['job_1']);
    assert.deepEqual((await store.jobs.abandoned({ nodeId: 'old' })).length, 1);

    async function claimed(): Promise<string[]> {
      return (await store.jobs.claim(claim)).map(({ job }) => job.id);
    }
  } finally {
    await store.close();
  }
});

test('migrates webhooks and deliveries of version 2', async () => {
  const frozen = join(root, 'frozen');
  await mkdir(frozen);
  for (const name of ['0001_initial.sql', '0002_jobs.sql']) {
    await copyFile(join(MIGRATIONS, name), join(frozen, name));
  }
  run({ directory: frozen });
  plantVersion2();

  const options = {
    clock: () => 10_000,
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  } as const;
  const store = await openStore(`sqlite:${path}`, { ...options, own: true });
  try {
    const webhook = await store.webhooks.get({ teamId: 't', id: 'wh_1' });
    const { settings, pausedAt, failingSince, lastSuccessAt } = webhook ?? {};
    assert.deepEqual(settings, { ordered: false, ratePerSecond: null, timeoutMs: 15_000 });
    assert.deepEqual([pausedAt, failingSince, lastSuccessAt], [null, null, null]);
    const lane = { teamId: 't', webhookId: 'wh_1' };
    const [due] = await store.deliveries.lanes(HOLDER);
    assert.deepEqual([due?.webhookId, due?.secrets, due?.headers], ['wh_1', ['sealed'], null]);
    const limits = { live: 9, retry: 9, replay: 9 };
    const loaded = await store.deliveries.load({ ...lane, limits, ordered: false });
    assert.deepEqual(
      loaded.map(({ id, origin, class: name, attempt }) => [id, origin, name, attempt]),
      [
        ['dlv_2', 'event', 'live', 0],
        ['dlv_3', 'event', 'retry', 1],
      ],
    );
    const listed = await store.deliveries.list({ ...lane, limit: 9 });
    assert.deepEqual(
      listed.map(({ id, state, last }) => [id, state, last?.outcome]),
      [
        ['dlv_3', 'waiting', 'timeout'],
        ['dlv_2', 'waiting', undefined],
        ['dlv_1', 'delivered', 'ok'],
      ],
    );
    const [attempt] = (await store.deliveries.get({ teamId: 't', id: 'dlv_1' }))?.attempts ?? [];
    assert.deepEqual([attempt?.status, attempt?.details], [200, null]);
  } finally {
    await store.close();
  }
});

/** Inserts a webhook and its deliveries as version 2 wrote them. */
function plantVersion2(): void {
  const db = new Database(path);
  db.exec(`
    insert into team (id, slug, last_sequence, created_at) values ('t', 'default', 3, 1);
    insert into webhook (team_id, id, workflow_id, url, events, event_set, fires_for, state, secret, created_at)
    values ('t', 'wh_1', 'people', 'https://a.test/', '["*"]', '["*"]', '|*|', 'active', 'sealed', 1);
    insert into event (team_id, sequence, id, type, body, created_at) values
      ('t', 1, 'evt_1', 'workflow_queued', '{}', 1),
      ('t', 2, 'evt_2', 'workflow_started', '{}', 2),
      ('t', 3, 'evt_3', 'workflow_failed', '{}', 3);
    insert into delivery (team_id, id, webhook_id, event_sequence, state, attempt, next_at, created_at) values
      ('t', 'dlv_1', 'wh_1', 1, 'delivered', 1, null, 1),
      ('t', 'dlv_2', 'wh_1', 2, 'waiting', 0, 2, 2),
      ('t', 'dlv_3', 'wh_1', 3, 'waiting', 1, 1, 3);
    insert into attempt (team_id, delivery_id, number, started_at, duration_ms, outcome, status) values
      ('t', 'dlv_1', 1, 1, 1, 'ok', 200),
      ('t', 'dlv_3', 1, 3, 1, 'timeout', null);
  `);
  db.close();
}

const COMMAND = { type: 'command', command: ['a'], protocol: 'ndjson', env: {}, directory: '.' };
const MODULE = { type: 'module', file: 'a.mts' };
/** A definition as version 1 stored it. */
const DEFINITION = {
  name: 'People',
  source: COMMAND,
  key: [],
  mode: 'replace',
  onInvalid: 'fail',
  overlap: 'reject',
  guards: { minRecords: 0, maxDropPercent: null },
  limits: { timeoutMs: 1, records: 2 },
  retries: { max: 2, backoffMs: 1 },
};

/** Inserts rows as version 1 wrote them. */
function plantVersion1(): void {
  const db = new Database(path);
  db.run("insert into team (id, slug, created_at) values ('t', 'default', 1)");
  const workflows: [string, number, unknown, number | null][] = [
    ['people', 1, DEFINITION, null],
    ['odd', 2, { ...DEFINITION, source: MODULE }, 5],
    ['runs', 3, DEFINITION, null],
  ];
  for (const [id, number, definition, pausedAt] of workflows) {
    db.run(
      `insert into workflow (team_id, id, number, definition_hash, paused_at, created_at, updated_at, definition)
       values ('t', ?, ?, 'h', ?, 1, 1, ?)`,
      id,
      number,
      pausedAt,
      JSON.stringify(definition),
    );
  }
  const jobs: [string, string, string, string | null, number | null][] = [
    ['job_1', 'odd', 'queued', null, null],
    ['job_2', 'runs', 'running', 'old', null],
    ['job_3', 'people', 'finished', null, 3],
    ['job_4', 'people', 'queued', null, null],
  ];
  for (const [id, workflowId, state, nodeId, finishedAt] of jobs) {
    db.run(
      `insert into job (team_id, id, workflow_id, slot, state, origin, run_at, node_id, lease_until, created_at, finished_at)
       values ('t', ?, ?, 0, ?, 'api', 1, ?, ?, 1, ?)`,
      id,
      workflowId,
      state,
      nodeId,
      nodeId === null ? null : 99,
      finishedAt,
    );
  }
  db.close();
}
