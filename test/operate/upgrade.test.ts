/** Every released version of the tables, with what a service of that version left there, comes to today's: on both databases. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { verifyWebhook } from 'flowhook-client';
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

/** What a migration has changed and not only added. */
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
      `${path} is released: databases have run it as it was. Put it back, and change tables by a new migration`,
    );
  }
});

test('what the newest released version left is frozen', () => {
  for (const driver of DRIVERS) {
    const file = fileOf(driver, Math.max(...versionsOf(driver)));
    assert.ok(existsSync(file), `${file} is missing: node test/support/store/freeze-schema.ts makes it`);
  }
});

for (const driver of DRIVERS) {
  for (const version of versionsOf(driver)) {
    test(`${driver}: what version ${version} left is all there afterwards, and the service goes on with it`, async (t) => {
      const { directory, tables, left } = await plant(t, driver, version);
      const before = await readSchema(tables.url);
      assert.equal(before.found, version);
      const options = { publicUrl: () => '', log: silentLogger };
      await (await openStore(tables.url, options)).close();
      assert.deepEqual((await readSchema(tables.url)).waiting, []);
      compare(left, await tables.read());
      await backedUp(driver, directory, version, before.newest);
      // What nobody ran is what the next version left, without its newest columns: that one goes on below.
      const isOldest = version === Math.min(...versionsOf(driver));
      if (isOldest || existsSync(fileOf(driver, version))) await goesOn(directory, tables, left);
    });
  }

  test(`${driver}: tables that are newer than this flowhook are refused with a sentence, and stay as they are`, async (t) => {
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

test("postgres: today's tables take what nodes of the version before write, which go on meanwhile", async (t) => {
  const today = await makeOldTables('postgres', { directory: '', migrations: MIGRATIONS });
  t.after(() => today.drop());
  const rows = frozenRows('postgres', Math.max(...versionsOf('postgres')), new URL(receiver.url).origin);
  // With the columns of then, of which none is gone.
  assert.deepEqual(await today.insert(rows), rows);
});

/** A database with the tables of a version, and in them what that version left. */
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

/** Every value of every row is there. */
function compare(left: Rows, found: Rows): void {
  for (const [table, rows] of left) {
    const now = found.get(table) ?? [];
    assert.equal(now.length, rows.length, `rows of ${table}`);
    for (const row of rows) {
      const columns = Object.keys(row).filter((column) => !CHANGED.includes(`${table}.${column}`));
      const isThere = now.some((one) => columns.every((column) => one[column] === row[column]));
      assert.ok(isThere, `a row of ${table} is gone or has changed: ${JSON.stringify(row)}`);
    }
  }
}

/** On SQLite a backup was made first, and it is what was there. */
async function backedUp(driver: Driver, directory: string, version: number, newest: number): Promise<void> {
  if (driver !== 'sqlite' || version === newest) return;
  const backups = listBackups(join(directory, 'data', 'backups'));
  assert.equal(backups.length, 1);
  assert.match(backups[0]?.name ?? '', new RegExp(`-v${version}-migration\\.db$`));
  const found = await readSchema(`sqlite:${backups[0]?.file}`);
  assert.equal(found.found, version);
}

/** Today's service reads what is there, sends what was waiting, and publishes the next version. */
async function goesOn(directory: string, tables: OldTables, left: Rows): Promise<void> {
  // Some minutes after what was left, whenever that is read.
  const newest = Math.max(...(left.get('job') ?? []).map((row) => Number(row.created_at)));
  const begun = performance.now();
  const service = await startService({
    directory,
    settings: { ...tables.settings, FLOWHOOK_ENCRYPTION_KEY: LEFT.encryptionKey },
    clock: () => newest + 10 * MINUTE_MS + Math.round(performance.now() - begun),
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

    // Two runs of people were told to the endpoint that failed: that is sent again, signed as it said then.
    const waiting = (left.get('delivery') ?? []).filter((row) => row.state === 'waiting');
    assert.ok(waiting.length > 0);
    const events = waiting.map((row) =>
      left.get('event')?.find((event) => event.sequence === row.event_sequence),
    );
    const told = () => receiver.received.filter(({ event }) => events.some((one) => one?.id === event.id));
    await receiver.until(() => told().length >= waiting.length, 'what was waiting', MINUTE_MS);
    for (const { headers, text } of told()) {
      const url = `/v1/integrations/webhooks/${waiting[0]?.webhook_id}/secret`;
      const secret = (await service.call('GET', url)).body as { secret: string };
      const nowMs = Number(headers['webhook-timestamp']) * 1_000;
      const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
      await verifyWebhook(text, plain, { secrets: [secret.secret], nowMs });
    }
    await countsBytes(service, left);
    const pushed = await service.call('POST', '/v1/workflows/pushed/push?mode=upsert', [{ id: 'c' }]);
    assert.equal(pushed.status, 200, JSON.stringify(pushed.body));
    assert.deepEqual((await data('pushed')).body, [{ id: 'b' }, { id: 'c' }]);
    await countsBytes(service, left);
  } finally {
    await service.stop();
    receiver.received.length = 0;
  }
}

/** The bytes of the records that can be read, of those published then and now, are what the quota goes by. */
async function countsBytes(service: TestService, left: Rows): Promise<void> {
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
