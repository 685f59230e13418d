/**
 * Runs modules: `.mts` files whose default export yields records. The harness runs a module in a child process. The
 * settings of a module are also read in a child process, because the server never runs workflow code.
 */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { DEFAULT_LIMITS, type Source } from '../../model/workflow.ts';
import type { Logger } from '../../observe/log.ts';
import { parseAsWritten } from '../../std/exact-json.ts';
import { commandOf } from '../../std/own-files.ts';
import type { Run, RunEnd, RunInput } from '../run.ts';
import { childOptions, failed, runOf, shareTurns } from '../run.ts';
import { type ChildEnd, startChild } from './child.ts';
import { cleanEnvironment, type RunAs, requireDirectory, runEnvironment } from './environment.ts';
import type { HarnessInput, SettingsInput, SettingsLine } from './module-harness.ts';

const HARNESS_ARGV: readonly string[] = commandOf('module-harness');

/** Starts a module. The child gets secrets and the state on standard input, and never on the command line. */
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
    argv: HARNESS_ARGV,
    environment: cleanEnvironment(input.environment, input.runAs),
    runEnvironment: runEnvironment(input),
    preparable: true,
    directory: dirname(file),
    stdin: JSON.stringify(harnessInput),
    harness: true,
    channel: shareTurns(input.team, { bindsOthers: false }),
    ...childOptions(input),
  });
  return runOf(child, `The module ${source.file}`, (end) => resultOf(end, source.file));
}

/**
 * Returns how the run of a module ended. Exit code 0 alone does not count as success, because a module that calls
 * `process.exit()` may have yielded only half of its records.
 */
function resultOf(end: ChildEnd, file: string): RunEnd {
  if (end.result === undefined) return failed(`The state of the module ${file} is larger than 1 MiB`, end);
  if (end.result === '') {
    return failed(
      `The module ${file} ended before it had yielded all records. Does it call process.exit()?`,
      end,
    );
  }
  const { state } = parseAsWritten(end.result) as { state?: unknown };
  return { ok: true, state: state === undefined ? undefined : JSON.stringify(state) };
}

/** Time limit for importing one module. */
const IMPORT_MS = 10_000;

interface ReadOptions {
  directory: string;
  /** The system user that imports the modules (default: the service's own user). */
  runAs: RunAs | undefined;
  log: Logger;
  /** Stops reading. */
  signal?: AbortSignal;
  importMs?: number;
}

/** The settings that a module exports, which may be any JSON, or the reason why the settings cannot be read. */
export type ModuleSettings = { settings: unknown } | { error: string };

/**
 * Imports modules one at a time in one child process. If a module hangs or ends the process, a new child process
 * continues with the remaining modules.
 *
 * @param files absolute paths
 * @returns one entry for each file
 * @throws the signal's reason, once it is aborted
 */
export async function readModuleSettings(
  files: readonly string[],
  options: ReadOptions,
): Promise<Map<string, ModuleSettings>> {
  const settings = new Map<string, ModuleSettings>();
  let rest = [...files];
  while (rest.length > 0) {
    options.signal?.throwIfAborted();
    const stuck = await readInOneChild(rest, settings, options);
    // If no module caused the failure, child processes do not work on this machine. All remaining modules then get the
    // error, because another child process would fail as well.
    for (const file of stuck.file === undefined ? rest : [stuck.file]) {
      if (stuck.error !== undefined && !settings.has(file)) settings.set(file, { error: stuck.error });
    }
    rest = rest.filter((file) => !settings.has(file));
  }
  return settings;
}

async function readInOneChild(
  files: readonly string[],
  settings: Map<string, ModuleSettings>,
  options: ReadOptions,
): Promise<{ file?: string; error?: string }> {
  const input: SettingsInput = { files: [...files] };
  const child = await startChild({
    argv: HARNESS_ARGV,
    environment: cleanEnvironment(new Map(), options.runAs),
    directory: options.directory,
    temporaryPrefix: 'flowhook-settings-',
    stdin: JSON.stringify(input),
    harness: true,
    runAs: options.runAs,
    limits: DEFAULT_LIMITS,
    secrets: new Map(),
    listener: { onLog() {}, onProgress() {} },
    log: options.log,
  });
  const limitMs = options.importMs ?? IMPORT_MS;
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill();
  }, limitMs);
  options.signal?.addEventListener('abort', child.kill, { once: true });
  let current: string | undefined;
  try {
    for await (const batch of child.batches) {
      for (const text of batch) {
        const line = JSON.parse(text) as SettingsLine;
        current = 'starts' in line ? line.file : undefined;
        if ('settings' in line) settings.set(line.file, { settings: line.settings });
        if ('error' in line) settings.set(line.file, { error: line.error });
      }
      timer.refresh();
    }
  } catch (error) {
    // The harness writes only valid lines, so the module that is being imported must have written this line.
    if (current === undefined) throw error;
    settings.set(current, {
      error: 'Importing the module wrote to file descriptor 3, which Flowhook uses itself',
    });
    child.kill();
    await child.end;
    return {};
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', child.kill);
  }
  const end = await child.end;
  options.signal?.throwIfAborted();
  if (end.code === 0 && current === undefined) return {};
  const why = timedOut
    ? `did not end within ${limitMs / 1000} s. Move work from the top level of the module into the exported function`
    : `ended the process (${end.signal ?? `exit code ${end.code}`}). Move code from the top level of the module into the exported function`;
  const words = end.tail === '' ? '' : `:\n${end.tail}`;
  return {
    ...(current === undefined ? {} : { file: current }),
    error: `Importing the module ${why}${words}`,
  };
}
