/** Child processes with one task: their answer, and the errors when they fail. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { runFileTask } from './file-tasks.ts';

/** Sends back what it is given, ends with an exit code, or waits. */
const PROGRAM = `
  process.once('message', ({ input }: { input: { answer?: object; exitCode?: number } }) => {
    if (input.exitCode !== undefined) process.exit(input.exitCode);
    if (input.answer !== undefined) process.send?.(input.answer, () => process.disconnect?.());
  });`;

let directory: string;
let program: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-child-'));
  await writeFile(join(directory, 'program.ts'), PROGRAM);
  program = pathToFileURL(join(directory, 'program')).href;
});
after(() => rm(directory, { recursive: true }));

/** Runs the program above in place of ours. */
const run = (input: object, signal?: AbortSignal) =>
  runFileTask('findDamage', input as never, { program, signal });

test('resolves with the answer, and rejects with what failed', async () => {
  assert.deepEqual(await run({ answer: { done: ['damage'] } }), ['damage']);
  await assert.rejects(run({ answer: { failed: 'The disk is full' } }), /^Error: The disk is full$/);
});

test('says with which code a process ended that did not answer', async () => {
  await assert.rejects(run({ exitCode: 3 }), /^Error: The process .*findDamage ended early \(exit code 3\)$/);
});

test('kills the process when the signal is aborted', async () => {
  const controller = new AbortController();
  const killed = run({}, controller.signal);
  controller.abort();
  await assert.rejects(killed, /ended early \(SIGKILL\)$/);
});

test('takes away an unfinished backup when whoever would do so was killed', async () => {
  const place = await mkdtemp(join(directory, 'backups-'));
  const file = join(place, '.unfinished-one');
  await writeFile(file, '');
  await writeFile(`${file}-journal`, '');
  const child = fork(join(import.meta.dirname, 'file-process.ts'), { env: {}, execArgv: [] });
  // Another process than its parent.
  child.send({ task: 'writeSnapshot', input: { path: 'any', file, directory: place }, from: process.ppid });
  await once(child, 'close');
  assert.deepEqual(await readdir(place), []);
});
