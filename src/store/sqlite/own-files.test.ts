/** Database files that are moved, deleted or damaged under a running server: it stops writing and reports it. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { copyFile, mkdtemp, open, readFile, rename, rm, symlink } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { until } from '../../../test/support/until.ts';
import { InUseError, Problem } from '../../model/error.ts';
import { type Logger, silentLogger } from '../../observe/log.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import { takeOwnership } from './owner.ts';

interface Line {
  level: 'warn' | 'error';
  message: string;
}

async function openIn(directory: string): Promise<{ store: Store; lines: Line[] }> {
  const lines: Line[] = [];
  const log = {
    ...silentLogger,
    warn: (_: object, message: string) => void lines.push({ level: 'warn', message }),
    error: (_: object, message: string) => void lines.push({ level: 'error', message }),
  } as unknown as Logger;
  const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    publicUrl: () => '',
    log,
    own: true,
  });
  return { store, lines };
}

async function place(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-files-'));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

const isMoved = (file: string) => (error: unknown) =>
  error instanceof Problem && error.code === 'data_moved' && error.message.includes(file);
/** Waits until the result of the last check has expired. */
const later = (store: Store) =>
  until('the files are checked again', () =>
    store.check().then(
      () => false,
      () => true,
    ),
  );

for (const file of ['flowhook.db', 'flowhook.db-wal']) {
  test(`nothing is written while ${file} is moved, and writing continues when it is back`, async (t) => {
    const directory = await place(t);
    const { store, lines } = await openIn(directory);
    t.after(() => store.close());
    await store.teams.ensure({ slug: 'before' });
    await rename(join(directory, file), join(directory, 'elsewhere'));
    await later(store);
    await assert.rejects(store.teams.ensure({ slug: 'during' }), isMoved(file));
    await assert.rejects(store.check(), isMoved(file), 'the service is not ready');
    assert.equal(lines.filter(({ level }) => level === 'error').length, 1, JSON.stringify(lines));
    await rename(join(directory, 'elsewhere'), join(directory, file));
    await until('the file is found again', () =>
      store.check().then(
        () => true,
        () => false,
      ),
    );
    await store.teams.ensure({ slug: 'after' });
    assert.deepEqual((await store.teams.list({ limit: 100 })).map(({ slug }) => slug).sort(), [
      'after',
      'before',
    ]);
  });
}

test('nothing is written while the files cannot be checked, and writing continues afterwards', async (t) => {
  const parent = await place(t);
  const directory = join(parent, 'data');
  const { store, lines } = await openIn(directory);
  t.after(() => store.close());
  await rename(directory, join(parent, 'away'));
  await symlink('data', directory);
  await until('the regular check reports it', () => lines.some(({ level }) => level === 'error'));
  await later(store);
  await assert.rejects(store.teams.ensure({ slug: 'during' }), isMoved('flowhook.db'));
  await assert.rejects(store.check(), isMoved('ELOOP'));
  await rm(directory);
  await rename(join(parent, 'away'), directory);
  await until('the files are found again', () =>
    store.check().then(
      () => true,
      () => false,
    ),
  );
  await store.teams.ensure({ slug: 'after' });
  assert.deepEqual(
    lines.map(({ level }) => level),
    ['error', 'warn'],
  );
});

test('a failed opening ends its writer thread', async (t) => {
  const directory = await place(t);
  const threads: Worker[] = [];
  const note = (thread: Worker) => void threads.push(thread);
  process.on('worker', note);
  t.after(() => void process.off('worker', note));
  // The check of the files fails, and so does logging this failure.
  const { statSync } = fs;
  t.mock.method(fs, 'statSync', (path: string, options: object) => {
    if (path === directory) return statSync(path, options);
    throw new Error('EIO: i/o error');
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const log = {
    ...silentLogger,
    error: () => {
      throw new Error('the log is full');
    },
  } as unknown as Logger;
  const url = `sqlite:${join(directory, 'flowhook.db')}`;
  const opened = openStore(url, { publicUrl: () => '', log, own: true });
  await assert.rejects(opened, /the log is full/);
  assert.equal(threads.length, 1);
  assert.equal(threads[0]?.threadId, -1, 'the thread has ended');
});

test('a server whose owner.db is deleted locks its directory again, so that no second server can', async (t) => {
  const directory = await place(t);
  const { store, lines } = await openIn(directory);
  t.after(() => store.close());
  await rm(join(directory, 'owner.db'));
  await until('the directory is locked again', () =>
    lines.some(({ message }) => message.startsWith('owner.retaken')),
  );
  await assert.rejects(openIn(directory), InUseError);
  await store.teams.ensure({ slug: 'still' });
});

test('a server whose directory another server has locked writes nothing until that server stops', async (t) => {
  const directory = await place(t);
  const { store } = await openIn(directory);
  t.after(() => store.close());
  await rm(join(directory, 'owner.db'));
  const second = takeOwnership(join(directory, 'flowhook.db'));
  await later(store);
  await assert.rejects(store.teams.ensure({ slug: 'a' }), isMoved('another server has taken the directory'));
  second.release();
  await until('the server has locked the directory again', () =>
    store.check().then(
      () => true,
      () => false,
    ),
  );
  await store.teams.ensure({ slug: 'a' });
});

test('commits lost behind a damaged page of the WAL are reported; an intact WAL is not', async (t) => {
  const directory = await place(t);
  const { store } = await openIn(directory);
  t.after(() => store.close());
  const start = (await readFile(join(directory, 'flowhook.db-wal'))).length;
  for (let n = 0; n < 20; n++) await store.teams.ensure({ slug: `team-${n}` });
  const reopened = async (at: number | undefined) => {
    const copy = await place(t);
    for (const name of ['flowhook.db', 'flowhook.db-wal']) {
      await copyFile(join(directory, name), join(copy, name));
    }
    if (at !== undefined) {
      const file = await open(join(copy, 'flowhook.db-wal'), 'r+');
      await file.write(Buffer.alloc(64, 0x41), 0, 64, at);
      await file.close();
    }
    const { store: opened, lines } = await openIn(copy);
    const teams = (await opened.teams.list({ limit: 100 })).length;
    await opened.close();
    return { teams, damage: lines.filter(({ message }) => message.startsWith('log.damaged')) };
  };
  assert.deepEqual(await reopened(undefined), { teams: 20, damage: [] });
  const inside = await reopened(start + 8_000);
  assert.ok(inside.teams < 20);
  assert.match(inside.damage[0]?.message ?? '', /\d+ commits after the damage are lost/);
  const header = await reopened(8);
  assert.match(header.damage[0]?.message ?? '', /header cannot be read/);
  const { length } = await readFile(join(directory, 'flowhook.db-wal'));
  assert.deepEqual(
    (await reopened(length - 100)).damage,
    [],
    'an incomplete last commit is normal after a power cut',
  );
});
