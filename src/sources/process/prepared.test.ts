/** Processes that are prepared for the next run of a module or an HTTP source. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { directoryOf, finish, runs, start } from '../../../test/support/jobs/sources.ts';
import { until } from '../../../test/support/until.ts';

const MODULE = `export default async function* (ctx) {
  const { FLOWHOOK_JOB, FLOWHOOK_WORKFLOW, TMPDIR } = process.env;
  yield { pid: process.pid, ppid: process.ppid, cwd: process.cwd(), FLOWHOOK_JOB, FLOWHOOK_WORKFLOW, TMPDIR, before: globalThis.before };
  globalThis.before = ctx.secret('TOKEN');
}`;

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
}

async function runModule(t: TestContext, workflowsDirectory: string, jobId: string) {
  const run = await start(t, { workflowsDirectory, jobId, secrets: new Map([['TOKEN', jobId]]) });
  const { lines, end } = await finish(run);
  assert.equal(end.ok, true);
  const { ppid, ...record } = JSON.parse(lines[0] ?? '') as Record<string, unknown> & { ppid: number };
  return { launcher: ppid, record };
}

/** Runs a module twice, and returns the pid of the process that was prepared for the third run. */
async function prepare(t: TestContext, directory: string): Promise<{ launcher: number; pid: number }> {
  const first = await runModule(t, directory, 'job_one');
  assert.deepEqual(childrenOf(first.launcher), [], 'nothing is prepared after one run');
  await runModule(t, directory, 'job_two');
  await until('a process is prepared', () => childrenOf(first.launcher).length > 0);
  const [pid = 0, ...others] = childrenOf(first.launcher);
  assert.deepEqual(others, []);
  return { launcher: first.launcher, pid };
}

test('after two runs within a minute, the next run gets a prepared process, in its own directory and environment', async (t) => {
  const directory = await directoryOf(t, { 'acme/one.mts': MODULE });
  const { pid } = await prepare(t, directory);
  const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
  assert.doesNotMatch(environment, /job_one|job_two|FLOWHOOK_/, 'it knows nothing of a run');
  const { record } = await runModule(t, directory, 'job_three');
  const { TMPDIR, ...rest } = record;
  assert.deepEqual(rest, {
    pid,
    cwd: `${directory}/acme`,
    FLOWHOOK_JOB: 'job_three',
    FLOWHOOK_WORKFLOW: 'one',
  });
  assert.match(String(TMPDIR), /flowhook-job_three-1-/);
  const { record: next } = await runModule(t, directory, 'job_four');
  assert.notEqual(next.pid, pid, 'no process gets a second run');
  assert.equal(next.before, undefined);
});

test('a prepared process that dies is replaced by a new one', async (t) => {
  const directory = await directoryOf(t, { 'acme/one.mts': MODULE });
  const { launcher, pid } = await prepareAgain(t, directory);
  process.kill(pid, 'SIGKILL');
  await until('it is reaped', () => !childrenOf(launcher).includes(pid));
  const { record } = await runModule(t, directory, 'job_three');
  assert.notEqual(record.pid, pid);
});

test('a prepared process ends when the launcher is killed', async (t) => {
  const directory = await directoryOf(t, { 'acme/one.mts': MODULE });
  const { launcher, pid } = await prepareAgain(t, directory);
  process.kill(launcher, 'SIGKILL');
  await until('it has ended', () => !runs(pid));
});

/** Like `prepare`, if earlier tests may have prepared a process already. */
async function prepareAgain(t: TestContext, directory: string): Promise<{ launcher: number; pid: number }> {
  const { launcher } = await runModule(t, directory, 'job_one');
  await until('a process is prepared', () => childrenOf(launcher).length > 0);
  return { launcher, pid: childrenOf(launcher)[0] as number };
}
