/** Child processes with one task: their results and errors. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runFileTask } from './file-tasks.ts';

/** Sends the given reply, exits with the given code, or waits. */
const PROGRAM = `
  process.once('message', ({ input }: { input: { reply?: object; exitCode?: number } }) => {
    if (input.exitCode !== undefined) process.exit(input.exitCode);
    if (input.reply !== undefined) process.send?.(input.reply, () => process.disconnect?.());
  });`;

let directory: string;
let program: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-child-'));
  await writeFile(join(directory, 'program.ts'), PROGRAM);
  program = join(directory, 'program.ts');
});
after(() => rm(directory, { recursive: true }));

/** Runs the program above instead of `file-process.ts`. */
const run = (input: object, signal?: AbortSignal) =>
  runFileTask('findDamage', input as never, { command: [process.execPath, program], signal });

test('resolves with the result, and rejects with the error', async () => {
  assert.deepEqual(await run({ reply: { done: ['damage'] } }), ['damage']);
  await assert.rejects(run({ reply: { failed: 'The disk is full' } }), /^Error: The disk is full$/);
});

test('rejects with the exit code of a process that ended without a result', async () => {
  await assert.rejects(run({ exitCode: 3 }), /^Error: The process .*findDamage ended early \(exit code 3\)$/);
});

test('kills the process when the signal is aborted', async () => {
  const controller = new AbortController();
  const killed = run({}, controller.signal);
  controller.abort();
  await assert.rejects(killed, /ended early \(SIGKILL\)$/);
});

test('deletes an unfinished backup when the parent process was killed', async () => {
  const place = await mkdtemp(join(directory, 'backups-'));
  const file = join(place, '.unfinished-one');
  await writeFile(file, '');
  await writeFile(`${file}-journal`, '');
  const child = fork(join(import.meta.dirname, 'file-process.ts'), { env: {}, execArgv: [] });
  // `from` is not the id of the child's parent, as if the parent had died.
  child.send({ task: 'writeSnapshot', input: { path: 'any', file, directory: place }, from: process.ppid });
  await once(child, 'close');
  assert.deepEqual(await readdir(place), []);
});
