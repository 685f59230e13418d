/** Child processes with one task: their answer, their output, and the errors when they fail. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { runChildTask } from './child-task.ts';

/** Sends back what it is given, ends with an exit code, or waits. */
const PROGRAM = `
  process.once('message', ({ answer, exitCode }: { answer?: string; exitCode?: number }) => {
    console.log('begun');
    if (exitCode !== undefined) process.exit(exitCode);
    if (answer !== undefined) process.send?.(answer, () => process.disconnect?.());
  });`;
const purpose = 'The process that answers';

let directory: string;
let program: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-child-'));
  await writeFile(join(directory, 'program.ts'), PROGRAM);
  program = pathToFileURL(join(directory, 'program')).href;
});
after(() => rm(directory, { recursive: true }));

test('resolves with the answer, after all lines that were printed', async () => {
  const lines: string[] = [];
  const onLine = (line: string) => lines.push(line);
  const answer = await runChildTask<string>({ answer: 'done' }, { program, purpose, onLine });
  assert.deepEqual([answer, lines], ['done', ['begun']]);
});

test('says with which code a process ended that did not answer', async () => {
  const ended = runChildTask({ exitCode: 3 }, { program, purpose });
  await assert.rejects(ended, /^Error: The process that answers ended early \(exit code 3\)$/);
});

test('kills the process when the signal is aborted', async () => {
  const controller = new AbortController();
  const onLine = () => controller.abort();
  const options = { program, purpose, onLine, signal: controller.signal };
  await assert.rejects(runChildTask({}, options), /ended early \(SIGKILL\)$/);
});
