/**
 * Upgrades from the tables and rows of every released version to the current version, on both databases. The short form
 * leaves out versions that were released together with a later one; UPGRADE_VERSIONS=all has all.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { verifyWebhook } from '../../client/src/flowhook-client.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { listBackups } from '../../src/store/backup-files.ts';
import { DRIVERS, type Driver, MIGRATIONS } from '../../src/store/migrations.ts';
import { openStore, readSchema } from '../../src/store/open.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';
import { DIGESTS, digests, fileOf, frozenRows, LEFT, type Rows } from '../support/store/frozen-schemas.ts';
import { makeOldTables, type OldTables } from '../support/store/old-tables.ts';

const MINUTE_MS = 60_000;
const released: Record<string, string> = JSON.parse(await readFile(DIGESTS, 'utf8'));
const receiver = await startReceiver();
after(() => receiver.stop());

/** The numbers of the released migrations of a driver. */
const versionsOf = (driver: Driver) =>
  Object.keys(released)
    .filter((path) => path.startsWith(`${driver}/`))
    .map((path) => Number(/(\d{4})_/.exec(path)?.[1]));

/** Columns whose values a migration has changed. */
const CHANGED = [
  // More settings since versions 2 and 3.
  'workflow.definition',
  // `erase` is called `records.erase` since version 10.
  'audit.action',
];

test('no released migration has been changed', () => {
  const now = digests();
  for (const [path, digest] of Object.entries(released)) {
    assert.equal(
      now[path],
      digest,
      `${path} is released: databases have run it unchanged. Restore it, and change tables with a new migration`,
    );
  }
});

test('the rows of the newest released version are frozen', () => {
  for (const driver of DRIVERS) {
    const file = fileOf(driver, Math.max(...versionsOf(driver)));
    assert.ok(existsSync(file), `${file} is missing: node test/support/store/freeze-schema.ts makes it`);
  }
});

for (const driver of DRIVERS) {
  // A version without its own file has the rows of the next version, whose service is tested with them.
  const own = (version: number, at: number) => at === 0 || existsSync(fileOf(driver, version));
  const versions = versionsOf(driver);
  for (const version of process.env.UPGRADE_VERSIONS === 'all' ? versions : versions.filter(own)) {
    test(`${driver}: keeps all rows of version ${version} after the upgrade, and the service continues with them`, async (t) => {
      const { directory, tables, left } = await plant(t, driver, version);
      const before = await readSchema(tables.url);
      assert.equal(before.found, version);
      const options = { publicUrl: () => '', log: silentLogger };
      await (await openStore(tables.url, options)).close();
      assert.deepEqual((await readSchema(tables.url)).waiting, []);
      compare(left, await tables.read());
      await backedUp(driver, directory, version, before.newest);
      if (own(version, versions.indexOf(version))) await checkService(directory, tables, left);
    });
  }

  test(`${driver}: refuses tables that are newer than this flowhook with a sentence, and does not change them`, async (t) => {
    const { directory, tables } = await plant(t, driver, Math.max(...versionsOf(driver)));
    await tables.pretend(9_999);
    const before = await tables.read();
    await assert.rejects(
      startService({ directory, settings: tables.settings }),
      /schema version 9999, and this flowhook knows versions up to \d+\. Run the newer flowhook/,
    );
    assert.deepEqual(await tables.read(), before);
  });
}

test('postgres: current tables accept the rows of nodes that still run the previous version', async (t) => {
  const today = await makeOldTables('postgres', { directory: '', migrations: MIGRATIONS });
  t.after(() => today.drop());
  const rows = frozenRows('postgres', Math.max(...versionsOf('postgres')), new URL(receiver.url).origin);
  // The rows have the columns of the previous version, which all still exist.
  assert.deepEqual(await today.insert(rows), rows);
});

/** Makes a database with the tables and rows of a version. */
async function plant(t: { after(run: () => Promise<void>): void }, driver: Driver, version: number) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-upgrade-'));
  const migrations = join(directory, 'migrations');
  await mkdir(migrations);
  for (const name of await readdir(MIGRATIONS)) {
    if (Number(name.slice(0, 4)) > version) continue;
    await copyFile(join(MIGRATIONS, name), join(migrations, name));
  }
  const tables = await makeOldTables(driver, { directory, migrations });
  t.after(async () => {
    await tables.drop();
    await rm(directory, { recursive: true, force: true });
  });
  const left = await tables.insert(frozenRows(driver, version, new URL(receiver.url).origin));
  return { directory, tables, left };
}

/** Checks that every value of every row is still there. */
function compare(left: Rows, found: Rows): void {
  for (const [table, rows] of left) {
    const now = found.get(table) ?? [];
    assert.equal(now.length, rows.length, `rows of ${table}`);
    for (const row of rows) {
      const columns = Object.keys(row).filter((column) => !CHANGED.includes(`${table}.${column}`));
      const isThere = now.some((one) => columns.every((column) => one[column] === row[column]));
      assert.ok(isThere, `a row of ${table} is missing or has changed: ${JSON.stringify(row)}`);
    }
  }
}

/** Checks that a backup of the old version was made on SQLite. */
async function backedUp(driver: Driver, directory: string, version: number, newest: number): Promise<void> {
  if (driver !== 'sqlite' || version === newest) return;
  const backups = listBackups(join(directory, 'data', 'backups'));
  assert.equal(backups.length, 1);
  assert.match(backups[0]?.name ?? '', new RegExp(`-v${version}-migration\\.db$`));
  const found = await readSchema(`sqlite:${backups[0]?.file}`);
  assert.equal(found.found, version);
}

/** Checks that the current service reads the records, sends waiting deliveries, and publishes new versions. */
async function checkService(directory: string, tables: OldTables, left: Rows): Promise<void> {
  // The clock starts 10 minutes after the newest row.
  const newest = Math.max(...(left.get('job') ?? []).map((row) => Number(row.created_at)));
  const startMs = performance.now();
  const service = await startService({
    directory,
    settings: { ...tables.settings, FLOWHOOK_ENCRYPTION_KEY: LEFT.encryptionKey },
    clock: () => newest + 10 * MINUTE_MS + Math.round(performance.now() - startMs),
  });
  try {
    const data = (id: string, query = '') => service.call('GET', `/v1/workflows/${id}/data${query}`);
    assert.deepEqual((await data('people')).body, [
      { id: '1', name: 'Ada Lovelace' },
      { id: '3', name: 'Edsger' },
    ]);
    assert.deepEqual((await data('people', '?version=1')).body, [
      { id: '1', name: 'Ada', email: 'ada@example.com' },
      { id: '2', name: 'Grace' },
    ]);
    assert.deepEqual((await data('pushed')).body, [{ id: 'b' }]);
    const { body } = await service.call('GET', '/v1/integrations/webhooks/list');
    const webhooks = (body as { webhooks: { id: string; url: string }[] }).webhooks;
    const active = (left.get('webhook') ?? []).filter((row) => row.state === 'active');
    assert.deepEqual(webhooks.map(({ id }) => id).sort(), active.map((row) => row.id).sort());

    // Deliveries that failed in the old version are retried and signed with the old secret.
    const waiting = (left.get('delivery') ?? []).filter((row) => row.state === 'waiting');
    assert.ok(waiting.length > 0);
    const events = waiting.map((row) =>
      left.get('event')?.find((event) => event.sequence === row.event_sequence),
    );
    const delivered = () =>
      receiver.received.filter(({ event }) => events.some((one) => one?.id === event.id));
    await receiver.until(() => delivered().length >= waiting.length, 'the waiting deliveries', MINUTE_MS);
    for (const { headers, text } of delivered()) {
      const url = `/v1/integrations/webhooks/${waiting[0]?.webhook_id}/secret`;
      const secret = (await service.call('GET', url)).body as { secret: string };
      const nowMs = Number(headers['webhook-timestamp']) * 1_000;
      const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
      await verifyWebhook(text, plain, { secrets: [secret.secret], nowMs });
    }
    await checkStoredBytes(service, left);
    const pushed = await service.call('POST', '/v1/workflows/pushed/push?mode=upsert', [{ id: 'c' }]);
    assert.equal(pushed.status, 200, JSON.stringify(pushed.body));
    assert.deepEqual((await data('pushed')).body, [{ id: 'b' }, { id: 'c' }]);
    await checkStoredBytes(service, left);
  } finally {
    await service.stop();
    receiver.received.length = 0;
  }
}

/** Checks that the quota counts the bytes of all records that can be read. */
async function checkStoredBytes(service: TestService, left: Rows): Promise<void> {
  let bytes = 0;
  for (const { id, team_id } of left.get('workflow') ?? []) {
    if (team_id !== service.team.id) continue;
    const { status, body } = await service.call('GET', `/v1/workflows/${id}/data`);
    if (status !== 200) continue;
    for (const record of body as unknown[]) bytes += Buffer.byteLength(JSON.stringify(record));
  }
  assert.ok(bytes > 0);
  assert.equal((await service.store.teams.holdings({ teamId: service.team.id })).storedBytes, bytes);
}
