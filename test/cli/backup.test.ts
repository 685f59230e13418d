/** `flowhook backup`: a backup of a server under load contains all acknowledged data, and can be restored. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { silentLogger } from '../../src/observe/log.ts';
import { makeWorkflow, publishRun } from '../../src/store/conformance/setup.ts';
import { openStore } from '../../src/store/open.ts';
import { makePlace, type Place } from '../support/cli/place.ts';
import { call } from '../support/faults/crash.ts';
import { makeDatabase } from '../support/postgres.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { RECORDS, underLoad } from '../support/store/backup-load.ts';

/** A new data directory with only the encryption key, and the same workflows. */
function elsewhere(t: TestContext, place: Place): Record<string, string> {
  const data = mkdtempSync(join(tmpdir(), 'flowhook-restored-'));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  copyFileSync(join(place.environment.FLOWHOOK_DATA ?? '', 'encryption.key'), join(data, 'encryption.key'));
  return { ...place.environment, FLOWHOOK_DATA: data };
}

function rows<Row>(file: string, sql: string): Row[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}

test('a backup made under load contains all data acknowledged before, and no partial changes', async (t) => {
  const { place, server, receiver, accepted, pushed, endLoad } = await underLoad(t);
  const before = {
    jobs: [...accepted],
    pushed: pushed.last,
    events: receiver.received.map(({ event }) => event.id),
    delivered: await deliveredOf(server),
  };
  assert.ok(before.jobs.length >= 10 && before.pushed >= 3 && before.delivered.length >= 10, 'a real load');
  const made = await place.run('backup', 'create', '--json');
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /Backups do not contain the encryption key/);
  const meanwhile = accepted.size - before.jobs.length + pushed.last - before.pushed;
  assert.ok(meanwhile > 0, 'the server was not blocked');
  const { file, mistakes, counts } = JSON.parse(made.stdout);
  assert.deepEqual(mistakes, []);
  const tagBefore = (await call(server, 'HEAD', '/v1/workflows/pushed/data')).headers.get('etag');
  await endLoad();
  await server.kill();

  const sealed = readFileSync(join(place.environment.FLOWHOOK_DATA ?? '', 'encryption.key'), 'utf8').trim();
  assert.equal(readFileSync(file).includes(Buffer.from(sealed)), false);
  const environment = elsewhere(t, place);
  place.environment.FLOWHOOK_DATA = environment.FLOWHOOK_DATA ?? '';
  const restored = await place.run('backup', 'restore', file, '--json');
  assert.equal(restored.code, 0, restored.stderr);
  assert.deepEqual(JSON.parse(restored.stdout).counts, counts);
  const database = JSON.parse(restored.stdout).database as string;
  assert.equal(database, join(environment.FLOWHOOK_DATA ?? '', 'flowhook.db'));

  const idsOf = (sql: string) => new Set(rows<{ id: string }>(database, sql).map(({ id }) => id));
  const has = (all: Set<string>, wanted: readonly string[], what: string) =>
    assert.deepEqual(
      wanted.filter((id) => !all.has(id)),
      [],
      what,
    );
  has(idsOf('select id from job'), before.jobs, 'acknowledged jobs');
  has(idsOf('select id from event'), before.events, 'events that arrived');
  has(idsOf(`select id from delivery where state = 'delivered'`), before.delivered, 'deliveries');
  const queued = rows<{ deliveries: number }>(
    database,
    `select (select count(*) from delivery where event_sequence = event.sequence) as deliveries
     from event where type = 'workflow_queued'`,
  );
  assert.ok(
    queued.every(({ deliveries }) => deliveries === 1),
    'each event with its delivery',
  );
  const sequences = rows<{ sequence: number }>(database, 'select sequence from event order by sequence');
  assert.deepEqual(
    sequences.map(({ sequence }) => sequence),
    sequences.map((_, at) => at + 1),
  );

  const second = await startServerProcess(environment);
  t.after(() => second.kill());
  const records = (await (await call(second, 'GET', '/v1/workflows/pushed/data')).json()) as { n: number }[];
  assert.equal(records.length, RECORDS);
  const [n = 0, ...others] = new Set(records.map((record) => record.n));
  assert.ok(others.length === 0 && n >= before.pushed, `push ${n}, but ${before.pushed} was acknowledged`);
  for (const id of ['one', 'two']) {
    const runs = (await (await call(second, 'GET', `/v1/workflows/${id}/data`)).json()) as { run: string }[];
    assert.deepEqual([runs.length, new Set(runs.map(({ run }) => run)).size], [RECORDS, 1]);
  }
  const tagAfter = (await call(second, 'HEAD', '/v1/workflows/pushed/data')).headers.get('etag');
  assert.ok(Number(tagBefore?.split('.')[1]?.split('-')[0]) < 1_000_000, String(tagBefore));
  assert.ok(Number(tagAfter?.split('.')[1]?.split('-')[0]) > 1_000_000, String(tagAfter));

  // Jobs that ran or waited when the backup was made end, and their events are sent.
  const left = rows<{ id: string }>(
    database,
    `select id from job where state in ('queued', 'running', 'retrying')`,
  ).map(({ id }) => id);
  await receiver.until(
    (received) => {
      const ends = received.filter(({ event }) => /finished|failed/.test(event.type));
      return left.every((id) => ends.some(({ event }) => event.jobId === id));
    },
    'the end of interrupted jobs',
    60_000,
  );
  assert.equal(await second.stop(), 0, second.output());
});

/** The ids of the deliveries that have arrived, according to the server. */
async function deliveredOf(server: ServerProcess): Promise<string[]> {
  const list = await call(server, 'GET', '/v1/integrations/webhooks/list');
  const { webhooks } = (await list.json()) as { webhooks: { id: string }[] };
  const ids: string[] = [];
  for (const { id } of webhooks) {
    const path = `/v1/integrations/webhooks/${id}/deliveries?state=delivered&limit=100`;
    const { deliveries } = (await (await call(server, 'GET', path)).json()) as {
      deliveries: { id: string }[];
    };
    ids.push(...deliveries.map((one) => one.id));
  }
  return ids;
}

/** A directory with a database and one backup. */
async function withBackup(t: TestContext): Promise<{ place: Place; data: string; file: string }> {
  const place = await makePlace(t, { 'default/people.yaml': 'source: { type: push }\n' });
  const data = place.environment.FLOWHOOK_DATA ?? '';
  const text = Array.from({ length: 2_000 }, (_, id) => JSON.stringify({ id, name: `Person ${id}` })).join(
    '\n',
  );
  writeFileSync(join(place.directory, 'people.ndjson'), text);
  const imported = await place.run('data', 'import', 'people.ndjson', '--workflow', 'people');
  assert.equal(imported.code, 0, imported.stderr);
  const { code, stdout, stderr } = await place.run('backup', 'create');
  assert.equal(code, 0, stderr);
  return { place, data, file: stdout.trim() };
}

test('verify finds any flipped byte, and restore rejects such a file', async (t) => {
  const { place, data, file } = await withBackup(t);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal((await place.run('backup', 'verify')).code, 0);
  const whole = readFileSync(file);
  const was = readFileSync(join(data, 'flowhook.db'));
  for (const at of [0, 30, 100, Math.floor(whole.length / 2), whole.length - 1]) {
    const broken = Buffer.from(whole);
    broken[at] = (broken[at] ?? 0) ^ 0x10;
    writeFileSync(file, broken);
    const verified = await place.run('backup', 'verify', file);
    assert.equal(verified.code, 1, `byte ${at}`);
    assert.match(verified.stderr, /is not usable: .*(checksum|damaged|no database)/);
    const list = await place.run('backup', 'list');
    assert.match(list.stdout, /not verified/);
  }
  const restored = await place.run('backup', 'restore', file, '--force');
  assert.equal(restored.code, 1);
  assert.match(restored.stderr, /cannot be restored, and nothing was changed/);
  assert.deepEqual(readFileSync(join(data, 'flowhook.db')), was);

  writeFileSync(file, whole.subarray(0, whole.length - 4_096));
  rmSync(`${file}.json`);
  const cut = await place.run('backup', 'verify', file);
  assert.equal(cut.code, 1, 'also without a checksum');
  writeFileSync(file, whole);
  const alone = await place.run('backup', 'verify', file, '--json');
  assert.deepEqual([alone.code, JSON.parse(alone.stdout).checksumMatches], [0, null]);

  // A file from other tools, which copy pages: verify does not change it, and restore accepts it.
  const pages = join(place.directory, 'odd #%?.db');
  copyFileSync(file, pages);
  const db = new DatabaseSync(pages);
  db.exec('pragma journal_mode = wal');
  db.close();
  const names = readdirSync(place.directory);
  assert.equal((await place.run('backup', 'verify', pages)).code, 0);
  assert.deepEqual(readdirSync(place.directory), names);
  assert.equal((await place.run('backup', 'restore', pages, '--force')).code, 0);
  assert.equal(rows(join(data, 'flowhook.db'), 'select id from record').length, 2_000);
});

test('restore does not overwrite a database without --force, with a running server, or with another key', async (t) => {
  const { place, data, file } = await withBackup(t);
  const database = join(data, 'flowhook.db');
  const asked = await place.run('backup', 'restore', file);
  assert.deepEqual([asked.code, /A database already exists.*--force/.test(asked.stderr)], [5, true]);

  const server = await startServerProcess({ ...place.environment, FLOWHOOK_PORT: '0' });
  const served = await place.run('backup', 'restore', file, '--force');
  assert.deepEqual([served.code, /in use by another flowhook server/.test(served.stderr)], [5, true]);
  // The server has created its key, which the first backup did not need.
  const later = await place.run('backup', 'create', '--json');
  const { file: sealed, encryptionKey } = JSON.parse(later.stdout);
  assert.match(encryptionKey, /^[0-9a-f]{16}$/);
  await server.stop();

  const guest = new DatabaseSync(database);
  guest.exec('begin; select * from team');
  const guested = await place.run('backup', 'restore', sealed, '--force');
  assert.deepEqual([guested.code, /A command is using the database/.test(guested.stderr)], [5, true]);
  guest.close();

  const key = readFileSync(join(data, 'encryption.key'));
  writeFileSync(join(data, 'encryption.key'), Buffer.alloc(32, 7).toString('base64'));
  const otherKey = await place.run('backup', 'restore', sealed, '--force');
  assert.equal(otherKey.code, 5);
  assert.match(otherKey.stderr, new RegExp(`needs the encryption key with fingerprint ${encryptionKey}`));
  rmSync(join(data, 'encryption.key'));
  const keyless = await place.run('backup', 'restore', sealed, '--force');
  assert.equal(keyless.code, 0, keyless.stderr);
  assert.match(keyless.stderr, new RegExp(`fingerprint ${encryptionKey} is missing here`));
  assert.match(keyless.stderr, /The previous database was kept as .*flowhook\.db\.replaced-/);
  const [kept = ''] = readdirSync(data).filter((name) => name.includes('.replaced-'));
  assert.equal(rows(join(data, kept), 'select id from record').length, 2_000);
  writeFileSync(join(data, 'encryption.key'), key);
  const again = await startServerProcess({ ...place.environment, FLOWHOOK_PORT: '0' });
  assert.equal(await again.stop(), 0);

  const newer = join(place.directory, 'newer.db');
  copyFileSync(sealed, newer);
  const db = new DatabaseSync(newer);
  db.exec('pragma user_version = 9999');
  db.close();
  const tooNew = await place.run('backup', 'restore', newer, '--force');
  assert.equal(tooNew.code, 1);
  assert.match(
    tooNew.stderr,
    /version 9999, but this flowhook supports only versions up to \d+\. Use a newer/,
  );
});

test('the write-ahead log of a lost or damaged database does not get into the restored one', async (t) => {
  const { place, data, file } = await withBackup(t);
  const database = join(data, 'flowhook.db');
  // A killed server leaves a log that contains changes.
  const server = await startServerProcess({ ...place.environment, FLOWHOOK_PORT: '0' });
  await server.kill();
  assert.ok(statSync(`${database}-wal`).size > 0);
  rmSync(database);
  const lost = await place.run('backup', 'restore', file);
  assert.equal(lost.code, 0, lost.stderr);
  assert.equal(existsSync(`${database}-wal`), false);
  assert.equal((await place.run('backup', 'verify', database)).code, 0);

  writeFileSync(database, 'no database at all, and longer than a header of one would be: '.repeat(20));
  writeFileSync(`${database}-wal`, 'nor a log');
  const damaged = await place.run('backup', 'restore', file, '--force');
  assert.equal(damaged.code, 0, damaged.stderr);
  assert.equal((await place.run('backup', 'verify', database)).code, 0);
  assert.ok(readdirSync(data).some((name) => /replaced-.*-wal$/.test(name)));
});

test('a backup on a full disk fails, and leaves no file', async (t) => {
  const { place, file } = await withBackup(t);
  const disk = join(place.directory, 'disk');
  mkdirSync(disk);
  const left = () => readdirSync(disk).filter((name) => name !== '.lock' && name !== 'owner.db');
  const small = { size: '64k', attempt: () => place.run('backup', 'create', '--to', disk) };
  // Space for the backup, but not for its manifest.
  const crowded = { ...small, size: '64m,nr_inodes=3' };
  const restoring = { size: '256k', attempt: () => place.run('backup', 'restore', file, '--data', disk) };
  for (const [{ size, attempt }, sentence] of [
    [small, /There is not enough space for a backup in .*needs about \d+ MB/],
    [crowded, /disk became full while the backup was written.*unfinished file was removed/],
    [restoring, /no space left/i],
  ] as const) {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk], { stdio: 'pipe' });
    } catch {
      return t.skip('only root may mount a small disk');
    }
    try {
      const { code, stderr } = await attempt();
      assert.equal(code, 1, stderr);
      assert.match(stderr, sentence);
      assert.deepEqual(left(), []);
    } finally {
      execFileSync('umount', [disk]);
    }
  }
});

test('the server makes scheduled backups', async (t) => {
  const place = await makePlace(t, { 'default/people.yaml': 'source: { type: push }\n' });
  const server = await startServerProcess({
    ...place.environment,
    FLOWHOOK_PORT: '0',
    FLOWHOOK_BACKUP_EVERY: '24h',
  });
  t.after(() => server.kill());
  // `backup list` takes long enough as a pause.
  while (!server.output().includes('backup.created')) await place.run('backup', 'list');
  const { stdout } = await place.run('backup', 'list', '--json');
  const [first, ...more] = JSON.parse(stdout);
  assert.deepEqual([first.origin, more.length, first.verifiedAt !== null], ['scheduled', 0, true]);
  assert.equal(await server.stop(), 0);
  place.environment.FLOWHOOK_BACKUP_EVERY = 'daily';
  const { code, stderr } = await place.run('serve');
  assert.deepEqual(
    [code, /FLOWHOOK_BACKUP_EVERY must be off, or a time .*, found "daily"/.test(stderr)],
    [2, true],
  );
});

test('on PostgreSQL backups are rejected, and verify reads a restored database', async (t) => {
  const { url, drop } = await makeDatabase();
  t.after(drop);
  const place = await makePlace(t, {}, false);
  place.environment.FLOWHOOK_DATABASE = url;
  const empty = await place.run('backup', 'verify');
  assert.deepEqual([empty.code, /has no tables/.test(empty.stderr)], [1, true]);
  const store = await openStore(url, { publicUrl: () => '', log: silentLogger, listen: false });
  const at = await makeWorkflow(store);
  await publishRun(store, at, { a: 'Ada', b: 'Bob' });
  await publishRun(store, at, { a: 'Ada', c: 'Cy' });
  await store.close();
  for (const args of [['create'], ['restore', 'any']]) {
    const { code, stderr } = await place.run('backup', ...args);
    assert.deepEqual([code, /pg_dump.*docs\/guide\/operate\/backup\.html/.test(stderr)], [2, true]);
  }
  place.environment.FLOWHOOK_BACKUP_EVERY = '24h';
  const serve = await place.run('serve');
  assert.deepEqual([serve.code, /BACKUP_EVERY must be off on PostgreSQL/.test(serve.stderr)], [2, true]);
  delete place.environment.FLOWHOOK_BACKUP_EVERY;
  delete place.environment.FLOWHOOK_DATABASE;
  const whole = await place.run('backup', 'verify', '--database', url, '--json');
  assert.equal(whole.code, 0, whole.stderr);
  const { counts } = JSON.parse(whole.stdout);
  assert.deepEqual([counts.workflows, counts.records, counts.jobs], [1, 3, 2]);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`delete from record where id = 'c'`);
  await client.end();
  const half = await place.run('backup', 'verify', '--database', url);
  assert.equal(half.code, 1);
  assert.match(half.stderr, /Version 2 of workflow default\/people should have 2 records, but has 1/);
});
