/** The process that starts the processes of runs: its end, its signals, and what it refuses. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chmod, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { directoryOf, finish, parentOf, runs, start } from '../../../test/support/jobs/sources.ts';
import { until } from '../../../test/support/until.ts';

test('if the launcher dies, its runs fail and their groups are killed, and the next run starts another', async (t) => {
  const script = `(trap '' TERM HUP; exec sleep 1000) & echo "[$!]"; sleep 1000`;
  const run = await start(t, { command: ['sh', '-c', script], jobId: 'job_launchertest' });
  const { value } = await run.batches[Symbol.asyncIterator]().next();
  const [member] = JSON.parse(value[0]) as [number];
  const launcher = parentOf(run.process.pid);
  process.kill(launcher, 'SIGKILL');
  const end = await run.end;
  assert.ok(!end.ok);
  assert.equal(end.reason, 'error');
  assert.match(end.error, /The command sh was lost: The process that starts runs has ended/);
  assert.deepEqual([runs(run.process.pid), runs(member)], [false, false]);
  const left = (await readdir(tmpdir())).filter((name) => name.includes('job_launchertest'));
  assert.deepEqual(left, [], 'nothing is left of the run');

  const next = await start(t, { command: ['sh', '-c', 'echo "[$PPID]"'] });
  const { lines } = await finish(next);
  assert.notDeepEqual(lines, [`[${launcher}]`]);
});

test('a launcher that does not respond is killed, and the next run starts another', async (t) => {
  const run = await start(t, { command: ['sleep', '1000'] });
  process.kill(parentOf(run.process.pid), 'SIGSTOP');
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const refused = assert.rejects(start(t, { command: ['true'] }), /The process that starts runs has ended/);
  // Starting a run takes some turns of the event loop.
  let isOver = false;
  void refused.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise(setImmediate);
    t.mock.timers.tick(1_000);
  }
  t.mock.timers.reset();
  await refused;
  assert.ok(!(await run.end).ok);
  assert.equal((await finish(await start(t, { command: ['echo', '{}'] }))).end.ok, true);
});

test('signals that a service manager sends to all processes end neither the launcher nor its runs', async (t) => {
  const endless = await start(t, { command: ['sleep', '1000'] });
  const launcher = parentOf(endless.process.pid);
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.kill(launcher, signal);
  const { lines, end } = await finish(await start(t, { command: ['sh', '-c', 'echo "[$PPID]"'] }));
  assert.deepEqual(lines, [`[${launcher}]`]);
  assert.equal(end.ok, true);
  assert.ok(runs(endless.process.pid));
});

test('a script without an interpreter line runs in a shell, and a missing interpreter is named', async (t) => {
  const directory = await directoryOf(t, { plain: 'echo "[1]"', broken: '#!/no/such/interpreter\n' });
  for (const name of ['plain', 'broken']) await chmod(`${directory}/${name}`, 0o755);
  const { lines } = await finish(await start(t, { command: ['./plain'], workflowsDirectory: directory }));
  assert.deepEqual(lines, ['[1]']);
  await assert.rejects(
    start(t, { command: ['./broken'], workflowsDirectory: directory }),
    /The command \.\/broken cannot be run: the interpreter in the first line of .*broken does not exist/,
  );
});

test('a temporary directory that does not exist is named', async (t) => {
  const { TMPDIR = tmpdir() } = process.env;
  t.after(() => {
    process.env.TMPDIR = TMPDIR;
  });
  process.env.TMPDIR = '/no/such/directory';
  await assert.rejects(
    start(t, { command: ['true'], workflowsDirectory: '/' }),
    /The temporary directory \/no\/such\/directory does not exist\. Create it/,
  );
});

test('a process of a run has no children of Flowhook, and the launcher starts each in its own group', async (t) => {
  const one = await start(t, { command: ['sleep', '1000'] });
  const two = await start(t, { command: ['sleep', '1000'] });
  const groupOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[2];
  assert.equal(parentOf(one.process.pid), parentOf(two.process.pid));
  for (const { process } of [one, two]) {
    assert.equal(groupOf(process.pid), String(process.pid));
    await until('the program runs', () => readFileSync(`/proc/${process.pid}/comm`, 'latin1') === 'sleep\n');
    assert.equal(readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'latin1'), '');
  }
});
