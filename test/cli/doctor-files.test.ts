/** `flowhook doctor` on damaged, missing or exposed files, databases and backups. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Finding } from '../../src/model/finding.ts';
import { createBackup } from '../../src/store/open.ts';
import { Database } from '../../src/store/sqlite/database.ts';
import { type Installation, makeInstallation } from '../support/cli/examined.ts';

const isRoot = process.getuid?.() === 0;
const PUSH = 'source: { type: push }\n';

/** Asserts that a finding describes a problem, with an effect and a fix. */
function assertProblem(finding: Finding, status: Finding['status'], what: RegExp): void {
  assert.equal(finding.status, status, JSON.stringify(finding));
  assert.match(finding.what, what);
  for (const sentence of [finding.why, finding.fix]) assert.match(sentence ?? '', /\S/);
}

test('files that other users can read are warnings, with the chmod command', async (t) => {
  const { data, directory, find } = await makeInstallation(t);
  assert.equal((await find('data-directory')).status, 'ok');
  assert.match((await find('secret-files')).what, /^1 secret file, /);
  chmodSync(data, 0o755);
  const opened = await find('data-directory');
  assertProblem(opened, 'warning', /Other users on this machine can access .* \(mode 0755\)/);
  assert.equal(opened.fix, `chmod 700 ${data}`);
  assert.equal((await find('secret-files')).status, 'ok');
  chmodSync(join(data, 'encryption.key'), 0o640);
  assertProblem(await find('secret-files'), 'warning', /encryption\.key \(mode 0640\)/);
  chmodSync(join(data, 'encryption.key'), 0o600);

  mkdirSync(join(directory, 'secrets'));
  const secrets = join(directory, 'secrets', 'default.yaml');
  writeFileSync(secrets, 'TOKEN: abc\n', { mode: 0o600 });
  assert.equal((await find('secret-files')).status, 'ok');
  chmodSync(secrets, 0o604);
  assertProblem(await find('secret-files'), 'warning', /default\.yaml \(mode 0604\)/);
  chmodSync(secrets, 0o600);
  writeFileSync(secrets, 'TOKEN: [\n');
  assertProblem(await find('secret-files'), 'error', /is not valid YAML/);
});

test('a file named by a _FILE variable must not be readable by other users', async (t) => {
  const { directory, configure, find } = await makeInstallation(t);
  const file = join(directory, 'bootstrap');
  writeFileSync(file, 'a-key-of-some-length\n', { mode: 0o644 });
  chmodSync(file, 0o644);
  const settings = configure({ FLOWHOOK_BOOTSTRAP_KEY_FILE: file });
  assertProblem(await find('secret-files', { settings }), 'warning', /bootstrap \(mode 0644\)/);
});

test('a directory that does not exist yet is created by the service, unless this user cannot create it', async (t) => {
  const { directory, configure, find } = await makeInstallation(t);
  const settings = configure({ FLOWHOOK_DATA: join(directory, 'new/data') });
  assert.equal((await find('data-directory', { settings })).status, 'ok');
  assert.equal((await find('secret-files', { settings })).what, 'There are no secret files');
  writeFileSync(join(directory, 'new'), '');
  assertProblem(await find('data-directory', { settings }), 'error', /not a directory/);
  const backups = configure({
    FLOWHOOK_BACKUP_DIRECTORY: join(directory, 'new/backups'),
    FLOWHOOK_BACKUP_EVERY: '24h',
  });
  assertProblem(await find('backup-place', { settings: backups }), 'error', /new\/backups does not exist/);
  if (!isRoot) return;
  rmSync(join(directory, 'new'));
  process.seteuid?.(65_534);
  const found = await find('data-directory', { settings }).finally(() => process.seteuid?.(0));
  assertProblem(found, 'error', /EACCES/);
});

test('a secret of a team whose name ends in _FILE is not used as a path, and not shown', async (t) => {
  const { configure, find } = await makeInstallation(t);
  // Longer than a file name may be.
  const settings = configure({ FLOWHOOK_SECRET__ACME__KEY_FILE: `hush${'A'.repeat(600)}` });
  const found = await find('secret-files', { settings });
  assert.equal(found.status, 'ok');
  assert.doesNotMatch(JSON.stringify(found), /hush/);
});

test('files of another user in the data directory are reported', {
  skip: !isRoot && 'only root gives files away',
}, async (t) => {
  const { data, find } = await makeInstallation(t);
  chownSync(join(data, 'encryption.key'), 65_534, 65_534);
  assertProblem(
    await find('data-directory'),
    'warning',
    /belong to another user than the directory: encryption\.key/,
  );
});

test('a database that this user may not access is not reported as missing', {
  skip: !isRoot && 'only root can become another user',
}, async (t) => {
  const { find } = await makeInstallation(t);
  // Loads all modules first, which the other user may not be allowed to read.
  assert.equal((await find('database')).status, 'ok');
  process.seteuid?.(65_534);
  const found = await find('database').finally(() => process.seteuid?.(0));
  assertProblem(found, 'error', /EACCES/);
});

test('workflow files: applied, changed, missing, invalid, and a missing directory', async (t) => {
  const { directory, configure, find } = await makeInstallation(t, {
    'default/one.yaml': PUSH,
    'default/two.yaml': PUSH,
  });
  assert.equal((await find('workflow-files')).what, '2 workflow files, all applied');
  const folder = join(directory, 'workflows', 'default');
  writeFileSync(join(folder, 'one.yaml'), `name: One\n${PUSH}`);
  rmSync(join(folder, 'two.yaml'));
  const changed = await find('workflow-files');
  assertProblem(
    changed,
    'warning',
    /changed or new: default\/one; applied, but without a file: default\/two/,
  );
  writeFileSync(join(folder, 'one.yaml'), 'name: One\nsource: { type: psh }\n');
  assertProblem(await find('workflow-files'), 'error', /default\/one\.yaml:2: /);
  const settings = configure({ FLOWHOOK_WORKFLOWS: join(directory, 'nowhere') });
  assertProblem(await find('workflow-files', { settings }), 'error', /nowhere does not exist/);
});

/** Overwrites bytes of the database file while it is closed. */
async function damage({ data }: Installation, bytes: Buffer, position: number): Promise<void> {
  const file = await open(join(data, 'flowhook.db'), 'r+');
  await file.write(bytes, 0, bytes.length, position);
  await file.close();
}

test('a page that is damaged is found without reading everything, and one that is whole as well', async (t) => {
  const place = await makeInstallation(t);
  assert.equal((await place.find('integrity')).status, 'ok');
  assert.equal((await place.find('integrity', { isFull: true })).status, 'ok');
  const db = new Database(join(place.data, 'flowhook.db'), { readOnly: true });
  const { rootpage } = db.get<{ rootpage: number }>(
    `select rootpage from sqlite_schema where name = 'delivery' and type = 'table'`,
  ) as { rootpage: number };
  const { page_size: size } = db.get<{ page_size: number }>('pragma page_size') as { page_size: number };
  db.close();
  await damage(place, Buffer.alloc(64, 0xff), (rootpage - 1) * size);
  assertProblem(await place.find('integrity'), 'error', /The database is damaged: /);
  assertProblem(await place.find('integrity', { isFull: true }), 'error', /The database is damaged: /);
});

test('a file that is not a database is an error, and checks that need it are skipped', async (t) => {
  const place = await makeInstallation(t);
  await damage(place, Buffer.from('no database at all, any more'), 0);
  const [database, deliveries] = await place.look(['database', 'deliveries']);
  assertProblem(database as Finding, 'error', /not a database/);
  assert.equal(deliveries?.status, 'skipped');
});

test('an older schema is a warning, a newer schema is an error, and neither is changed', async (t) => {
  const place = await makeInstallation(t);
  const version = (number?: number) => {
    const db = new Database(join(place.data, 'flowhook.db'));
    if (number !== undefined) db.exec(`pragma user_version = ${number}`);
    const row = db.get<{ user_version: number }>('pragma user_version');
    db.close();
    return row?.user_version ?? 0;
  };
  const newest = version();
  assert.equal((await place.find('schema')).status, 'ok');
  version(newest - 1);
  assertProblem(await place.find('schema'), 'warning', /pending migrations: 0\d+_/);
  assert.equal((await place.find('jobs')).status, 'skipped');
  assert.equal(version(), newest - 1);
  version(9_999);
  assertProblem(
    await place.find('schema'),
    'error',
    /is at version 9999, but this flowhook supports versions up to/,
  );
});

test('the encryption key: a different, an invalid and a missing one', async (t) => {
  const { data, find } = await makeInstallation(t);
  const file = join(data, 'encryption.key');
  assert.equal((await find('encryption-key')).status, 'ok');
  writeFileSync(file, `${randomBytes(32).toString('base64')}\n`);
  assertProblem(await find('encryption-key'), 'error', /is not the one that encrypted the secrets/);
  writeFileSync(file, 'short\n');
  assertProblem(await find('encryption-key'), 'error', /cannot be read: .*32 bytes/);
  rmSync(file);
  assertProblem(await find('encryption-key'), 'error', /is missing/);
});

test('backups: in the same directory as the encryption key, and on the disk of the database', async (t) => {
  const { data, config, look, find } = await makeInstallation(t);
  const names = ['backup-age', 'backup-place'];
  assert.deepEqual(
    (await look(names)).map(({ status }) => status),
    ['skipped', 'skipped'],
  );
  const directory = config.backupDirectory;
  await createBackup(config.databaseUrl, {
    directory,
    now: Date.now(),
    origin: 'command',
  });
  assertProblem(await find('backup-place'), 'warning', /are in the data directory/);
  copyFileSync(join(data, 'encryption.key'), join(directory, 'encryption.key'));
  assertProblem(await find('backup-place'), 'warning', /encryption key is stored with the backups/);
});

/** Mounts a small file system in memory; returns undefined if that is not permitted. */
function smallDisk(t: TestContext): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'flowhook-small-'));
  let isMounted = false;
  t.after(() => {
    if (isMounted) execFileSync('umount', ['-l', path], { stdio: 'ignore' });
    rmSync(path, { recursive: true, force: true });
  });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'flowhook-test', path], { stdio: 'ignore' });
    isMounted = true;
    return path;
  } catch {
    return undefined;
  }
}

test('a full disk and a file system in memory are reported', async (t) => {
  const { configure, look } = await makeInstallation(t);
  const disk = smallDisk(t);
  if (disk === undefined) return t.skip('mounting a file system is not permitted here');
  await writeFile(join(disk, 'all'), Buffer.alloc(3_000_000)).catch(() => undefined);
  const settings = configure({ FLOWHOOK_DATA: disk });
  const found = await look(['disk-space-data', 'file-system'], { settings });
  const [space, kind] = found as [Finding, Finding];
  assertProblem(space, 'error', / free for the data directory/);
  assertProblem(kind, 'warning', /is in memory/);
});
