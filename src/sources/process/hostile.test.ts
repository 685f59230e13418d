/** Sources that misbehave: each ends within its limits, with an error that says why. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { directoryOf, finish, runs, start } from '../../../test/support/jobs/sources.ts';
import { until } from '../../../test/support/until.ts';
import type { Run, RunEnd } from '../run.ts';

const sh = (script: string): string[] => ['sh', '-c', script];
const node = (script: string): string[] => ['node', '-e', script];

/** Starts a source and, once it has logged `ready`, stops it as a timeout would. */
async function endedByDeadline(t: TestContext, command: string[], killGraceMs = 50) {
  const ready = Promise.withResolvers<void>();
  const run = await start(t, {
    command,
    killGraceMs,
    onLog: ({ text }) => text === 'ready' && ready.resolve(),
  });
  const finished = finish(run);
  await ready.promise;
  run.stop();
  return finished;
}

function assertFailed(end: RunEnd, reason: string, sentence: RegExp): void {
  assert.ok(!end.ok);
  assert.equal(end.reason, reason);
  assert.match(end.error, sentence);
}

async function ended(run: Run): Promise<RunEnd> {
  return (await finish(run)).end;
}

test('a source that prints endlessly is cut off at its output limit', async (t) => {
  const run = await start(t, {
    command: sh('yes "{}"'),
    limits: { outputBytes: 5_000_000 },
    killGraceMs: 50,
  });
  assertFailed(await ended(run), 'output', /larger than 5 MB and was cut off\. Raise `limits\.output`/);
  assert.ok(run.bytes > 5_000_000 && run.bytes < 6_000_000, `${run.bytes} bytes`);
});

test('a source that closes its output early and hangs ends at its timeout', async (t) => {
  const { end } = await endedByDeadline(t, sh('echo {}; exec >&-; echo ready >&2; exec sleep 1000'));
  assertFailed(end, 'error', /was stopped before it had finished/);
});

test('grandchildren that a source leaves behind are killed when it ends', async (t) => {
  const script = `for n in 1 2 3; do sh -c 'trap "" TERM HUP; sleep 1000 >&- & echo "[$!]"; wait' & done; sleep 0.2`;
  const { lines, end } = await finish(await start(t, { command: sh(script) }));
  assert.equal(end.ok, true);
  assert.equal(lines.length, 3);
  assert.deepEqual(lines.map((line) => (JSON.parse(line) as [number])[0]).filter(runs), []);
});

test('a source that keeps forking is killed with all processes that it started', async (t) => {
  const fork = `const { spawn } = require('node:child_process');
    for (let n = 0; n < 40; n++) console.log(JSON.stringify([spawn('sleep', ['1000'], { stdio: 'ignore' }).pid]));
    console.error('ready'); process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`;
  const { lines } = await endedByDeadline(t, node(fork));
  assert.equal(lines.length, 40);
  assert.deepEqual(lines.map((line) => (JSON.parse(line) as [number])[0]).filter(runs), []);
});

test('a source that allocates Buffers endlessly is killed at its memory limit', async (t) => {
  const run = await start(t, {
    command: node('const all = []; setInterval(() => all.push(Buffer.alloc(8e6, 1)), 5)'),
    limits: { memoryBytes: 150_000_000 },
  });
  assertFailed(
    await ended(run),
    'memory',
    /used [\d.]+ MB of memory .* `limits\.memory` is 150 MB\. Raise it/,
  );
});

test('the memory of all processes of a run counts, and a child cannot hide its memory', async (t) => {
  const child = 'const all = Buffer.alloc(60e6, 1); setInterval(() => all[0], 1000)';
  const parent = `const { spawn } = require('node:child_process');
    for (let n = 0; n < 3; n++) spawn('node', ['-e', ${JSON.stringify(child)}]); setInterval(() => {}, 1000)`;
  const run = await start(t, { command: node(parent), limits: { memoryBytes: 200_000_000 } });
  assertFailed(await ended(run), 'memory', /`limits\.memory` is 200 MB/);
});

test('a source that writes a line of 100 MB is cut off after 1 MiB', async (t) => {
  const run = await start(t, { command: sh('head -c 100000000 /dev/zero | tr "\\0" x'), killGraceMs: 50 });
  assertFailed(await ended(run), 'output', /Line 1 is longer than 1048576 bytes/);
  assert.ok(run.bytes < 2_000_000, `${run.bytes} bytes`);
});

test('a source that floods standard error is throttled, and its last lines are still logged', async (t) => {
  let bytes = 0;
  const command = sh(
    'yes "noise that nobody wants to read" | head -c 1000000 >&2; echo the last words >&2; exit 1',
  );
  const run = await start(t, { command, onLog: ({ text }) => (bytes += text.length) });
  const end = await ended(run);
  assertFailed(end, 'error', /the last words$/);
  assert.ok(!end.ok && end.error.length < 9_000);
  assert.ok(bytes > 900_000, `${bytes} bytes of log`);
});

test('a source that floods standard error with tiny lines does not keep the server busy', async (t) => {
  let lines = 0;
  let linesInTurn = 0;
  let most = 0;
  let last = '';
  const run = await start(t, {
    command: sh('yes | head -c 400000 >&2; echo the last words >&2; exit 1'),
    onLog({ text }) {
      lines++;
      last = text;
      if (linesInTurn++ === 0) {
        setImmediate(() => {
          linesInTurn = 0;
        });
      }
      most = Math.max(most, linesInTurn);
    },
  });
  assertFailed(await ended(run), 'error', /the last words$/);
  assert.equal(last, 'the last words');
  assert.equal(lines, 200_001);
  // A chunk from the pipe contains more than 30,000 of these lines.
  assert.ok(most <= 2_000, `${most} lines in one turn of the event loop`);
});

test('a flood of standard error without line breaks is logged in pieces', async (t) => {
  const longest: number[] = [];
  const command = sh('head -c 2000000 /dev/zero | tr "\\0" x >&2; exit 1');
  const run = await start(t, { command, onLog: ({ text }) => longest.push(text.length) });
  assertFailed(await ended(run), 'error', /exit code 1/);
  assert.ok(Math.max(...longest) <= 8_192);
});

test('a source that deletes its working directory and its TMPDIR still succeeds', async (t) => {
  const workflowsDirectory = await directoryOf(t, { 'here/now': '' });
  const command = sh('rm -rf "$TMPDIR" ../here; echo "\\"$TMPDIR\\""');
  const { lines, end } = await finish(
    await start(t, { command, workflowsDirectory, source: { directory: 'here' } }),
  );
  assert.deepEqual(end, { ok: true, state: undefined });
  assert.equal(existsSync(JSON.parse(lines[0] ?? '')), false);
  await assert.rejects(
    start(t, { command, workflowsDirectory, source: { directory: 'here' } }),
    /here, in which this workflow runs, does not exist/,
  );
});

test('a source that replaces its state file with a pipe, a link or a directory fails immediately', async (t) => {
  for (const trick of ['mkfifo', 'ln -s /dev/zero', 'mkdir']) {
    const command = sh(`rm "$FLOWHOOK_STATE" && ${trick} "$FLOWHOOK_STATE"`);
    assertFailed(await ended(await start(t, { command })), 'error', /is not a regular file of at most 1 MiB/);
  }
});

test('many sources that stop their own groups at the same time are all started and killed', async (t) => {
  const runs = await Promise.all(
    Array.from({ length: 10 }, () => start(t, { command: ['sh', '-c', 'kill -STOP 0; sleep 600'] })),
  );
  for (const run of runs) run.kill();
  for (const { end } of await Promise.all(runs.map(finish))) assert.equal(end.ok, false);
});

test('a source that stops its own group is still killed', async (t) => {
  const run = await start(t, { command: sh('echo {}; kill -STOP 0'), killGraceMs: 50 });
  const finished = finish(run);
  await until('the group is stopped', () => run.bytes > 0);
  run.stop();
  assertFailed((await finished).end, 'error', /was stopped before it had finished/);
});
