/** Node's compile cache is kept only where no other user can write. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

const BIN = join(import.meta.dirname, '../..', 'bin', 'flowhook.js');
const OTHER_USER = 20_001;

async function place(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-compiled-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const home = join(directory, 'home');
  const shared = join(directory, 'tmp');
  await mkdir(home, { mode: 0o700 });
  await mkdir(shared);
  await chmod(shared, 0o1777);
  return {
    home,
    shared,
    cache: join(home, '.cache', 'flowhook'),
    run(environment: Record<string, string> = {}) {
      const env = { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: shared, ...environment };
      // With umask 000, because the modes must not depend on the umask.
      const script = `umask 000; exec "${process.execPath}" "${BIN}" help`;
      const done = spawnSync('sh', ['-c', script], { env, encoding: 'utf8' });
      assert.equal(done.status, 0, done.stderr);
    },
  };
}

const filesIn = (directory: string) => readdir(directory).catch(() => 'nothing there');

test('keeps compiled code in a directory of the user, and nothing in the temporary directory', async (t) => {
  const { cache, shared, run } = await place(t);
  run();
  const { mode } = await lstat(cache);
  assert.equal(mode & 0o777, 0o700);
  assert.equal((await filesIn(cache)).length, 1);
  assert.deepEqual(await filesIn(shared), []);
});

test('does not use a cache that other users can write or replace', async (t) => {
  const { home, cache, shared, run } = await place(t);
  await mkdir(cache, { recursive: true });
  for (const path of [cache, join(home, '.cache'), home]) {
    await chmod(path, 0o777);
    run();
    assert.deepEqual(await filesIn(cache), [], path);
    await chmod(path, 0o700);
  }
  assert.deepEqual(await filesIn(shared), []);
});

test('uses no cache if HOME is a file, relative or empty', async (t) => {
  const { shared, run } = await place(t);
  for (const HOME of [BIN, 'relative', '']) run({ HOME });
  assert.deepEqual(await filesIn(shared), []);
  assert.equal(await filesIn('relative'), 'nothing there');
});

test('root uses no cache of another user, neither in their home nor through a link', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('needs root to create files of another user');
  const { home, cache, run } = await place(t);
  await mkdir(cache, { recursive: true, mode: 0o700 });
  // Like `sudo` when it keeps HOME.
  for (const path of [cache, join(home, '.cache'), home]) {
    await chown(path, OTHER_USER, OTHER_USER);
    run();
    assert.deepEqual(await filesIn(cache), [], path);
    await chown(path, 0, 0);
  }
  const theirs = join(home, 'theirs');
  await mkdir(theirs, { mode: 0o700 });
  await chown(theirs, OTHER_USER, OTHER_USER);
  await rm(cache, { recursive: true });
  await symlink(theirs, cache);
  run();
  assert.deepEqual(await filesIn(theirs), []);
});
