/** Copies in steps, from a database that is written all the time and whose WAL must not grow meanwhile. */
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { createBackup, openStore } from '../open.ts';
import { Database } from './database.ts';
import { copyInSteps } from './step-copy.ts';

const PAGE = 4_096;
/** Pages after which the WAL is checkpointed. */
const CHECKPOINT = 20;
const STEP = 16;
/** Pages that each write adds. */
const ADDED = 10;

/** A database of 500 pages, and a write that changes its first and its last row in one transaction. */
async function makeDatabase(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-copy-'));
  const path = join(directory, 'source.db');
  const db = new Database(path, { synchronous: 'OFF' });
  t.after(async () => {
    db.close();
    await rm(directory, { recursive: true });
  });
  db.exec(`pragma journal_mode = wal; pragma wal_autocheckpoint = ${CHECKPOINT};
    create table row (id integer primary key, writes integer not null default 0, pad blob)`);
  const add = (pages: number, on = db) => on.run('insert into row (pad) values (zeroblob(?))', pages * PAGE);
  for (let n = 0; n < 50; n++) add(10);
  let writes = 0;
  const write = () => {
    writes += 1;
    db.run('begin immediate');
    add(ADDED);
    db.run('update row set writes = ? where id = 1 or id = 50', writes);
    db.run('commit');
  };
  const copy = join(directory, 'copy.db');
  writeFileSync(copy, '');
  return {
    db,
    path,
    copy,
    add,
    write,
    get writes() {
      return writes;
    },
    logPages: () => statSync(`${path}-wal`).size / PAGE,
  };
}

function rowsOf(path: string) {
  const db = new Database(path, { readOnly: true });
  try {
    const [checked] = db.all<{ integrity_check: string }>('pragma integrity_check');
    assert.equal(checked?.integrity_check, 'ok');
    return db
      .all<{ writes: number }>('select writes from row where id = 1 or id = 50')
      .map(({ writes }) => writes);
  } finally {
    db.close();
  }
}

test('a copy contains the rows written meanwhile, and the WAL does not grow', async (t) => {
  const source = await makeDatabase(t);
  await copyInSteps(source.db, source.copy, { pages: STEP, onStep: source.write }).done;
  assert.ok(source.writes * ADDED > 20 * CHECKPOINT, 'far more pages were written than the WAL may hold');
  assert.ok(source.logPages() < 4 * CHECKPOINT, `${source.logPages()} pages`);
  assert.deepEqual(rowsOf(source.copy), [source.writes, source.writes]);
});

test('an open read transaction, such as that of a snapshot, lets the WAL grow', async (t) => {
  const source = await makeDatabase(t);
  const reader = new Database(source.path, { readOnly: true });
  t.after(() => reader.close());
  reader.run('begin');
  reader.get('select 1 from row');
  for (let n = 0; n < 50; n++) source.write();
  assert.ok(source.logPages() > 20 * CHECKPOINT);
});

test('a copy fails when another connection commits all the time, or when it is stopped', async (t) => {
  const source = await makeDatabase(t);
  const other = new Database(source.path, { synchronous: 'OFF' });
  t.after(() => other.close());
  const disturbed = copyInSteps(source.db, source.copy, {
    pages: STEP,
    onStep: () => void other.run('update row set writes = writes + 1 where id = 2'),
  });
  await assert.rejects(disturbed.done, /Another process kept writing/);
  const stopped = copyInSteps(source.db, source.copy, { pages: STEP, onStep: () => stopped.stop() });
  await assert.rejects(stopped.done, /was stopped/);
});

test('a server copies its backup in steps, or from a snapshot if that fails', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-copy-'));
  const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, { publicUrl: () => '', log: silentLogger, synchronous: 'OFF' });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  await store.teams.ensure({ slug: 'before' });
  const task = { directory: join(directory, 'backups'), now: Date.now(), origin: 'scheduled' } as const;
  const files: string[] = [];
  const made = await createBackup(databaseUrl, {
    ...task,
    async copyTo(file, signal) {
      files.push(file);
      const copied = store.copyTo(file, signal);
      await store.teams.ensure({ slug: 'meanwhile' });
      await copied;
    },
  });
  assert.equal(files.length, 1);
  assert.deepEqual(made.mistakes, []);
  assert.ok(made.counts.teams >= 1);
  const opened = new Database(made.file, { readOnly: true });
  assert.equal(
    opened.get<{ journal_mode: string }>('pragma journal_mode')?.journal_mode,
    'delete',
    'a backup can be opened on a read-only disk',
  );
  opened.close();
  const otherwise = await createBackup(databaseUrl, {
    ...task,
    async copyTo(file) {
      writeFileSync(file, 'half a database');
      throw new Error('The writer died');
    },
  });
  assert.deepEqual([otherwise.mistakes, otherwise.counts.teams], [[], 2]);
});

test('closing the writer ends a copy', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-copy-'));
  const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, { publicUrl: () => '', log: silentLogger, synchronous: 'OFF' });
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'copy.db');
  writeFileSync(file, '');
  const copied = store.copyTo(file).then(
    () => 'copied',
    () => 'failed',
  );
  await store.close();
  assert.match(await copied, /copied|failed/);
  await assert.rejects(store.copyTo(file));
});
