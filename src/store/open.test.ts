/** The URLs of databases, and the errors for those that cannot be opened. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openStore } from './open.ts';

const options = { publicUrl: () => 'http://localhost', log: silentLogger };

test('rejects other database URLs without repeating them, because they may contain a password', async () => {
  for (const url of ['', 'sqlite:', 'sqlite:relative.db', 'mysql://secret@x/y', '/data/flowhook.db']) {
    await assert.rejects(openStore(url, options), (error: Error) => {
      assert.match(
        error.message,
        /must be of the form sqlite:\/absolute\/path\/flowhook\.db or postgres:\/\//,
      );
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
});

test('reports why PostgreSQL is unreachable, without the password', async () => {
  await assert.rejects(openStore('postgres://me:secret@127.0.0.1:1/db', options), (error: Error) => {
    assert.match(error.message, /cannot be used: .*ECONNREFUSED.*FLOWHOOK_DATABASE/);
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
});

test('creates the data directory, keeps its rows, and leaves no WAL when it closes', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-open-'));
  try {
    const url = `sqlite:${directory}/new/data/flowhook.db`;
    const first = await openStore(url, { ...options, own: true });
    const team = await first.teams.ensure({ slug: 'acme' });
    await first.close();
    assert.deepEqual((await readdir(`${directory}/new/data`)).sort(), ['flowhook.db', 'owner.db']);
    const second = await openStore(url, { ...options, own: true });
    assert.deepEqual(await second.teams.list({ limit: 100 }), [team]);
    assert.ok(Math.abs(second.now() - Date.now()) < 30_000);
    await second.close();
  } finally {
    await rm(directory, { recursive: true });
  }
});
