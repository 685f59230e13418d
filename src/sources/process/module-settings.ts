/** Reads the settings that modules export, by importing them in a child process: the server never runs workflow code. */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEFAULT_LIMITS } from '../../model/workflow.ts';
import type { Logger } from '../../observe/log.ts';
import { startChild } from './child.ts';
import { cleanEnvironment } from './environment.ts';
import type { SettingsInput, SettingsLine } from './module-settings-harness.ts';
import type { RunAs } from './run-as.ts';

/** How long the import of one module may take. */
const IMPORT_MS = 10_000;

const PROGRAM = fileURLToPath(
  new URL(`./module-settings-harness${extname(import.meta.url)}`, import.meta.url),
);

interface ReadOptions {
  directory: string;
  /** The system user that modules are imported as; undefined: the service's own. */
  runAs: RunAs | undefined;
  log: Logger;
  /** Stops reading. */
  signal?: AbortSignal;
  importMs?: number;
}

/** The settings that a module exports (any JSON), or a sentence about why they cannot be read. */
export type ModuleSettings = { settings: unknown } | { error: string };

/**
 * Imports modules one after the other in one child process. If one of them hangs or ends the process, a new child
 * continues with the rest.
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
    // With no module to blame, the child itself does not work here, and another one would not either.
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
    launch: () => ({
      argv: [process.execPath, PROGRAM],
      environment: cleanEnvironment(new Map(), options.runAs),
    }),
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
        current = 'begins' in line ? line.file : undefined;
        if ('settings' in line) settings.set(line.file, { settings: line.settings });
        if ('error' in line) settings.set(line.file, { error: line.error });
      }
      timer.refresh();
    }
  } catch (error) {
    // What cannot be read as a line of ours was written by the module that is being imported.
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
    ? `did not end within ${limitMs / 1000} s. The top level of a module must not do the work: the exported function does`
    : `ended the process (${end.signal ?? `exit code ${end.code}`}). The top level of a module must only define things`;
  const words = end.tail === '' ? '' : `:\n${end.tail}`;
  return {
    ...(current === undefined ? {} : { file: current }),
    error: `Importing the module ${why}${words}`,
  };
}
