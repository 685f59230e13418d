/** Migrations: races, backups, refusals. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
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
    `create table one (x text); insert into one values ('kept');`,
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

test('makes the tables of this version, and nothing when run again', () => {
  run();
  const made = schemaOf(path);
  assert.ok(made.version >= 1);
  assert.ok(made.tables.includes('job'));
  run();
  assert.deepEqual(schemaOf(path), made);
});

test('runs only what is new and copies the database first', async () => {
  run({ directory });
  await writeFile(join(directory, '0002_two.sql'), 'create table two (x text);');
  await writeFile(join(directory, 'README.md'), 'not a migration');
  run({ directory });
  assert.deepEqual(schemaOf(path), { version: 2, tables: ['one', 'two'] });
  const copies = (await readdir(root)).filter((name) => name.endsWith('.backup'));
  assert.deepEqual(copies, ['flowhook.db.v1.2026-01-01T000000.000Z.backup']);
  assert.deepEqual(schemaOf(join(root, copies[0] ?? '')), { version: 1, tables: ['one'] });
});

test('takes a migration back that fails half-way', async () => {
  run({ directory });
  await writeFile(
    join(directory, '0002_two.sql'),
    'create table two (x text); insert into nothing values (1);',
  );
  assert.throws(() => run({ directory }), /nothing/);
  assert.deepEqual(schemaOf(path), { version: 1, tables: ['one'] });
});

test('changes nothing under a server that runs, unless it is that server', async () => {
  run({ directory });
  await writeFile(join(directory, '0002_two.sql'), 'create table two (x text);');
  const server = takeOwnership(path);
  assert.throws(() => run({ directory }), /in use by another flowhook server/);
  assert.equal(schemaOf(path).version, 1);
  run({ directory, own: true });
  assert.equal(schemaOf(path).version, 2);
  await writeFile(join(directory, '0003_three.sql'), 'create table three (x text);');
  server.release();
  run({ directory });
  assert.equal(schemaOf(path).version, 3);
  takeOwnership(path).release();
});

test('refuses a schema that is newer than the code and leaves it as it is', async () => {
  await writeFile(join(directory, '0002_two.sql'), 'create table two (x text);');
  run({ directory });
  await rm(join(directory, '0002_two.sql'));
  assert.throws(() => run({ directory }), /schema version 2.*versions up to 1.*newer flowhook/);
  assert.deepEqual(schemaOf(path), { version: 2, tables: ['one', 'two'] });
});

test('lets several processes open a new database at the same time', async () => {
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
