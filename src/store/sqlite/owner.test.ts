/** One process owns a data directory until that process ends or is killed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { takeOwnership } from './owner.ts';

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-owner-'));
});
after(() => rm(directory, { recursive: true }));

test('refuses a second owner of a directory and names the directory', () => {
  const first = takeOwnership(join(directory, 'flowhook.db'));
  assert.throws(
    () => takeOwnership(join(directory, 'flowhook.db')),
    (error: Error) => error.message.includes(directory) && error.message.includes('FLOWHOOK_DATA'),
  );
  first.release();
  takeOwnership(join(directory, 'flowhook.db')).release();
});

test('refuses while another process owns the directory, until that process is killed', async () => {
  const path = join(directory, 'flowhook.db');
  const script = `
    import { takeOwnership } from ${JSON.stringify(new URL('./owner.ts', import.meta.url).href)};
    takeOwnership(${JSON.stringify(path)});
    console.log('owned');
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  try {
    await once(child.stdout, 'data');
    assert.throws(() => takeOwnership(path), /in use by another flowhook server/);
  } finally {
    child.kill('SIGKILL');
  }
  await exited;
  takeOwnership(path).release();
});
