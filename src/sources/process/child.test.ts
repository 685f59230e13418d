/** How child processes and their groups are stopped, killed and orphaned. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { directoryOf, finish, parentOf, runs, start } from '../../../test/support/jobs/sources.ts';
import { until } from '../../../test/support/until.ts';

/** Three generations of processes that ignore SIGTERM. Prints their pids: `[leader, child, grandchild]`. */
const STUBBORN = `trap '' TERM; sh -c "trap '' TERM; sh -c \\"trap '' TERM; echo [\\$\\$, \\$PPID, $$]; exec sleep 1000 >&-\\"; true"; true`;

async function firstLine(batches: AsyncIterable<string[]>): Promise<string> {
  const { value } = await batches[Symbol.asyncIterator]().next();
  return value[0];
}

test('stop sends SIGTERM, and kills the whole group after the grace period', async (t) => {
  const run = await start(t, { command: ['sh', '-c', STUBBORN], killGraceMs: 50 });
  const pids: number[] = JSON.parse(await firstLine(run.batches));
  assert.equal(pids.length, 3);
  assert.ok(pids.every(runs));
  run.stop();
  run.stop();
  const end = await run.end;
  assert.ok(!end.ok && /was stopped before it had finished/.test(end.error));
  assert.deepEqual(pids.filter(runs), []);
});

test('a command that listens to SIGTERM is not killed, and still counts as stopped', async (t) => {
  const script = `process.on('SIGTERM', () => { console.error('cleaned up'); process.exit(0); });
    console.log('{}'); setInterval(() => {}, 1000);`;
  const run = await start(t, { command: ['node', '-e', script], killGraceMs: 60_000 });
  await firstLine(run.batches);
  run.stop();
  const end = await run.end;
  assert.ok(!end.ok);
  assert.match(end.error, /was stopped before it had finished\..*\ncleaned up$/s);
});

test('stopping right after the start ends the run', async (t) => {
  const run = await start(t, { command: ['sleep', '1000'], killGraceMs: 60_000 });
  run.stop();
  const { end } = await finish(run);
  assert.equal(end.ok, false);
});

test('processes that a command leaves in its group are killed at its end', async (t) => {
  const script = `(trap '' TERM HUP; exec sleep 1000) & echo "[$!]"`;
  const { lines, end } = await finish(await start(t, { command: ['sh', '-c', script] }));
  assert.equal(end.ok, true);
  const [pid] = JSON.parse(lines[0] ?? '') as [number];
  assert.equal(runs(pid), false);
});

test('a process that left the group does not delay the end', async (t) => {
  const script = `exec 3>&1; echo "[$(setsid sh -c 'echo $$; exec sleep 1000 >&3' &)]"`;
  const { lines, end } = await finish(await start(t, { command: ['sh', '-c', script] }));
  const [pid] = JSON.parse(lines[0] ?? '') as [number];
  assert.ok(runs(pid));
  process.kill(pid);
  assert.equal(end.ok, true);
});

test('all records of a program that has ended arrive, however slow the launcher is', async (t) => {
  const endless = await start(t, { command: ['sleep', '1000'] });
  const launcher = parentOf(endless.process.pid);
  const line = '{ printf "{\\"id\\":%d,\\"text\\":\\"%01000d\\"}\\n", i, 0 }';
  const command = ['awk', `BEGIN { for (i = 1; i <= 345; i++) ${line} }`];
  const run = await start(t, { command, jobId: 'job_slowlauncher' });
  await until('the run is gone', async () => {
    const names = await readdir(tmpdir());
    return !names.some((name) => name.includes('job_slowlauncher'));
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  process.kill(launcher, 'SIGSTOP');
  const finished = finish(run);
  for (let turns = 0; turns < 20; turns++) {
    await new Promise(setImmediate);
    t.mock.timers.tick(2_000);
  }
  process.kill(launcher, 'SIGCONT');
  t.mock.timers.reset();
  const { lines, end } = await finished;
  assert.equal(lines.length, 345);
  assert.equal(end.ok, true);
});

test('a program that waits for all of its children has none at its start', async (t) => {
  const script = 'import os\ntry:\n  os.wait()\nexcept ChildProcessError:\n  print("{}")';
  if (!existsSync('/usr/bin/python3')) return t.skip('needs python3');
  const { lines } = await finish(await start(t, { command: ['/usr/bin/python3', '-c', script] }));
  assert.deepEqual(lines, ['{}']);
});

test('a run that has ended can be killed before its output is read', async (t) => {
  const run = await start(t, { command: ['sh', '-c', 'echo {}'] });
  await until('the command is gone', () => !existsSync(`/proc/${run.process.pid}`));
  run.kill();
  const end = await run.end;
  assert.equal(end.ok, false);
});

test('megabytes of standard error without a line break keep the error message short', async (t) => {
  const script = `process.stderr.write('x'.repeat(3 * 2 ** 20) + '\\nlast words', () => process.exit(1))`;
  const { end } = await finish(await start(t, { command: ['node', '-e', script] }));
  assert.ok(!end.ok);
  assert.match(end.error, /last words$/);
  assert.ok(end.error.length < 9_000);
});

test('when the server is killed, all processes of its runs end', async (t) => {
  const directory = await directoryOf(t, {
    'server.mts': `
      import { startChild } from ${JSON.stringify(join(import.meta.dirname, 'child.ts'))};
      import { silentLogger } from ${JSON.stringify(join(import.meta.dirname, '../../observe/log.ts'))};
      const child = await startChild({
        argv: ['/bin/sh', '-c', ${JSON.stringify(STUBBORN)}], environment: { PATH: '/usr/bin:/bin' },
        directory: '/', temporaryPrefix: 'flowhook-test-', stdin: '', harness: false, secrets: new Map(), log: silentLogger,
        limits: { memoryBytes: 1e9, outputBytes: 1e9 }, listener: { onLog() {}, onProgress() {} },
      });
      for await (const [line] of child.batches) console.log(JSON.stringify([child.process.pid, ...JSON.parse(line!)]));`,
  });
  const server = spawn(process.execPath, [join(directory, 'server.mts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: directory },
  });
  const exited = once(server, 'exit');
  const [text] = (await once(server.stdout, 'data')) as [Buffer];
  const pids = JSON.parse(text.toString()) as number[];
  assert.ok(pids.every(runs), 'all of them run');
  server.kill('SIGKILL');
  await exited;
  await until('the group is gone', () => !pids.some(runs));
  await until('nothing is left of the run', async () => (await readdir(directory)).length === 1);
});
