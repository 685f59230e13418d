/** Processes and directories left by a previous server are removed, and no others. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runs } from '../../../test/support/jobs/sources.ts';
import type { ProcessMark } from '../../model/job.ts';
import { killLeftover, markOf } from './groups.ts';
import { removeLeftoverFiles, temporaryPrefix } from './run-files.ts';

/** Starts a process group without a watcher. Returns the mark of its leader and the pid of a second member. */
async function leaveBehind(
  t: TestContext,
): Promise<{ mark: ProcessMark; member: number; reaped: Promise<unknown> }> {
  const child = spawn('/bin/sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const reaped = once(child, 'exit');
  t.after(() => child.kill('SIGKILL'));
  const mark = await markOf(child.pid ?? 0);
  assert.ok(mark);
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  const member = Number(text);
  t.after(() => runs(member) && process.kill(member, 'SIGKILL'));
  return { mark, member, reaped };
}

test('kills the whole group of a recorded process', async (t) => {
  const { mark, member, reaped } = await leaveBehind(t);
  assert.equal(await killLeftover(mark), true);
  assert.deepEqual([runs(mark.pid), runs(member)], [false, false]);
  await reaped;
  assert.equal(await killLeftover(mark), false);
});

test('does not kill a process that merely has the pid of a recorded one', async (t) => {
  const { mark, member } = await leaveBehind(t);
  assert.equal(await killLeftover({ ...mark, startedAt: mark.startedAt.replace(/\d+$/, '1') }), false);
  assert.equal(await killLeftover({ ...mark, startedAt: 'another boot/1' }), false);
  assert.deepEqual([runs(mark.pid), runs(member)], [true, true]);
});

test('never kills itself, its own group or everything', async () => {
  const own = await markOf(process.pid);
  assert.ok(own);
  for (const pid of [process.pid, 0, 1, -1]) {
    assert.equal(await killLeftover({ ...own, pid }), false);
  }
});

test('removes only the temporary directories of one attempt', async () => {
  const attempt = { jobId: 'job_leftovertest', attempt: 2 };
  const left = await mkdtemp(join(tmpdir(), temporaryPrefix(attempt)));
  await writeFile(join(left, 'file'), '');
  const other = await mkdtemp(join(tmpdir(), temporaryPrefix({ ...attempt, attempt: 1 })));
  await removeLeftoverFiles(attempt);
  assert.deepEqual([existsSync(left), existsSync(other)], [false, true]);
  await removeLeftoverFiles({ ...attempt, attempt: 1 });
  assert.equal(existsSync(other), false);
});
