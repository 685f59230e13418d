/**
 * The program in a module's child process: imports the module, calls it and writes the records that it yields. Or it imports
 * several modules, and writes the `export const workflow` of each.
 *
 * File descriptors (see `launcher.ts`): 0 the input, 1 and 2 the log, 3 records as NDJSON, 4 the result, 5 the per-host
 * request limits of the server. It is loaded for every run, so it imports as little as possible.
 */
import { writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { missingSecret } from '../../model/secret-names.ts';
import { parseAsWritten } from '../../std/exact-json.ts';
import type { Context } from '../context.d.ts';
import { readInput } from './harness-input.ts';
import {
  createProgress,
  createWriter,
  endWhenStuck,
  nameOf,
  notAFunction,
  usefulPart,
  writeLog,
  writeResult,
} from './harness-output.ts';

export interface HarnessInput {
  /** The module's absolute path. */
  file: string;
  team: string;
  /** JSON text. */
  state: string | null;
  secrets: Record<string, string>;
  /** The addresses that `ctx.fetch` may connect to, in the syntax of FLOWHOOK_ALLOW_NETWORKS. */
  allowNetworks: string;
}

/** The input for reading the settings of modules. No module is run. */
export interface SettingsInput {
  /** Absolute paths. */
  files: string[];
}

/**
 * A line that the harness writes to descriptor 3 when its input is a `SettingsInput`. `definition.ts` checks the
 * settings.
 */
export type SettingsLine =
  | { file: string; starts: true }
  | { file: string; settings: unknown }
  | { file: string; error: string };

endWhenStuck('The module awaits a promise that can never settle');
main().then(() => process.exit(0), fail);

async function main(): Promise<void> {
  const input = readInput<HarnessInput | SettingsInput>();
  // This variable is meant only for the harness (see `launch.ts`), and not for programs that a module starts.
  delete process.env.NODE_COMPILE_CACHE;
  if ('files' in input) {
    // A line is written before each import too, so that the server knows which module hangs.
    for (const file of input.files) {
      writeSettings({ file, starts: true });
      writeSettings(await settingsOf(file));
    }
    return;
  }
  process.on('uncaughtException', fail);
  await run(input);
}

/** Writes the error, and exits only after it is written, because the pipe may be full. */
function fail(error: unknown): void {
  process.stderr.write(`${usefulPart(error)}\n`, () => process.exit(1));
}

async function run(input: HarnessInput): Promise<void> {
  const stopping = new AbortController();
  let listens = false;
  process.on('SIGTERM', () => {
    if (!listens) process.exit(143);
    stopping.abort(new Error('This run must stop'));
  });
  const state = createState(input.state);
  const progress = createProgress();
  let fetching: Promise<typeof globalThis.fetch> | undefined;
  const context: Context = {
    state: { get: state.get, set: state.set },
    secret: (name) => {
      if (Object.hasOwn(input.secrets, name)) return input.secrets[name] as string;
      throw new Error(missingSecret(input.team, name));
    },
    log: { debug: logger('debug'), info: logger('info'), warn: logger('warn'), error: logger('error') },
    progress: progress.report,
    get signal() {
      listens = true;
      return stopping.signal;
    },
    fetch: async (target, init) => {
      fetching ??= import('./module-fetch.ts').then(({ createFetch, turnsOfServer }) =>
        createFetch({
          allowNetworks: input.allowNetworks,
          turns: turnsOfServer(),
          signal: stopping.signal,
          onWait: logger('info'),
        }),
      );
      return (await fetching)(target, init);
    },
  };

  const module = (await import(pathToFileURL(input.file).href)) as { default?: unknown };
  if (typeof module.default !== 'function') throw new Error(notAFunction(module.default));
  const yielded: unknown = await module.default(context);
  if (!isIterable(yielded)) {
    throw new TypeError(
      `The default export must be a generator function (async function*) or return an iterable, but it returned ${nameOf(yielded)}`,
    );
  }
  const writer = createWriter();
  let position = 0;
  for await (const record of yielded) {
    if (stopping.signal.aborted) process.exit(143);
    await writer.write(lineOf(record, ++position));
  }
  await writer.flush();
  progress.flush();
  writeResult(state.changed());
}

function lineOf(record: unknown, position: number): string {
  const prototype = typeof record === 'object' && record !== null ? Object.getPrototypeOf(record) : undefined;
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(
      `Record ${position} is ${nameOf(record)}. A record must be a plain object such as { id: "a1", name: "Ada" }`,
    );
  }
  try {
    return JSON.stringify(record);
  } catch (error) {
    throw new TypeError(`Record ${position} cannot be written as JSON: ${(error as Error).message}`);
  }
}

function isIterable(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return (
    typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)
  );
}

function logger(level: string) {
  return (message: string, fields?: object): void => {
    const details =
      fields === undefined ? '' : ` ${inspect(fields, { breakLength: Number.POSITIVE_INFINITY })}`;
    writeLog(level, `${message}${details}`);
  };
}

/** @param text JSON; the numbers in values that the module does not set stay as they are written */
function createState(text: string | null) {
  const initial = text === null ? null : parseAsWritten(text);
  const values = new Map(
    typeof initial === 'object' && initial !== null && !Array.isArray(initial) ? Object.entries(initial) : [],
  );
  let changed = false;
  return {
    // A module gets a copy, with numbers as JavaScript has them.
    get: (key: string): unknown =>
      values.has(key) ? JSON.parse(JSON.stringify(values.get(key))) : undefined,
    set: (key: string, value: unknown): void => {
      changed = true;
      // The value is serialized immediately, so that a value that is not JSON fails in this call, and not at the end of
      // the run.
      const text = JSON.stringify(value) as string | undefined;
      if (text === undefined) values.delete(key);
      else values.set(key, parseAsWritten(text));
    },
    changed: (): { state?: unknown } => (changed ? { state: Object.fromEntries(values) } : {}),
  };
}

function writeSettings(line: SettingsLine): void {
  writeSync(3, `${JSON.stringify(line)}\n`);
}

async function settingsOf(file: string): Promise<SettingsLine> {
  try {
    const module = (await import(pathToFileURL(file).href)) as { default?: unknown; workflow?: unknown };
    if (typeof module.default !== 'function') return { file, error: notAFunction(module.default) };
    return { file, settings: asJson(module.workflow ?? {}) };
  } catch (error) {
    return { file, error: `The module cannot be imported: ${usefulPart(error)}` };
  }
}

/**
 * Refuses values that JSON would drop silently. Otherwise, nobody would notice that a guard is missing, for example.
 */
function asJson(settings: unknown): unknown {
  return JSON.parse(
    JSON.stringify(settings, (key, value: unknown) => {
      if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
        throw new TypeError(`\`workflow.${key}\` is a ${typeof value}. Settings must be plain values`);
      }
      return value;
    }),
  );
}
