/** A module: a `.mts` file whose default export yields records, run by the harness in a child process. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Source } from '../../model/workflow.ts';
import type { Run, RunEnd, RunInput } from '../run.ts';
import { shareTurns } from '../turns.ts';
import { type ChildEnd, startChild } from './child.ts';
import { childOptions, failed, runOf } from './child-run.ts';
import { cleanEnvironment, requireDirectory, runEnvironment } from './environment.ts';
import type { HarnessInput } from './module-harness.ts';

/** The command that starts the harness. In the built package, this file and the harness are JavaScript. */
const HARNESS_ARGV: readonly string[] = [
  process.execPath,
  fileURLToPath(new URL(`./module-harness${extname(import.meta.url)}`, import.meta.url)),
];

/** Starts a module. It gets its secrets and state on standard input, never on the command line. */
export async function startModule(
  input: RunInput,
  source: Extract<Source, { type: 'module' }>,
): Promise<Run> {
  const file = resolve(input.workflowsDirectory, source.file);
  await requireDirectory(dirname(file));
  await access(file, constants.R_OK).catch((error: Error) => {
    throw new Error(`The module ${file} cannot be read on this machine: ${error.message}`);
  });
  const harnessInput: HarnessInput = {
    file,
    team: input.team,
    state: input.state,
    secrets: Object.fromEntries(input.secrets),
    allowNetworks: input.fetchPolicy?.text ?? 'none',
  };
  const child = await startChild({
    launch: () => ({
      argv: HARNESS_ARGV,
      environment: { ...cleanEnvironment(input.environment, input.runAs), ...runEnvironment(input) },
    }),
    directory: dirname(file),
    stdin: JSON.stringify(harnessInput),
    harness: true,
    channel: shareTurns(input.team, { bindsOthers: false }),
    ...childOptions(input),
  });
  return runOf(child, `The module ${source.file}`, (end) => resultOf(end, source.file));
}

/** Exit code 0 alone is not enough: a module that calls `process.exit()` would publish half of its records. */
function resultOf(end: ChildEnd, file: string): RunEnd {
  if (end.result === undefined)
    return failed(`The state that the module ${file} left is larger than 1 MiB`, end);
  if (end.result === '') {
    return failed(
      `The module ${file} ended before it had yielded everything: did it call process.exit()?`,
      end,
    );
  }
  return { ok: true, state: (JSON.parse(end.result) as { state?: unknown }).state };
}
