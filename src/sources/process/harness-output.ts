/** Writes the output of our own programs in child processes: records, progress, log lines, a result and errors. */
import { write, writeSync } from 'node:fs';
import { inspect } from 'node:util';

/** File descriptors, see `launcher.ts`. */
const RECORDS = 3;
const RESULT = 4;
/** Maximum number of buffered characters. Beyond it, a writer waits until the buffer has been written. */
const BUFFERED_CHARACTERS = 64 * 1024;
/**
 * Maximum length of a log text. Longer texts are cut, because their JSON must fit into one log line (see `stderr.ts`).
 */
const MAX_TEXT = 10_000;
const PROGRESS_MS = 200;

/**
 * Writes lines to the pipe for records. A full pipe blocks only the generator and not the event loop, so a module can
 * still receive SIGTERM.
 */
export function createWriter() {
  let buffered = '';
  let writing: Promise<void> | undefined;

  async function drain(): Promise<void> {
    while (buffered !== '') {
      let bytes = Buffer.from(buffered);
      buffered = '';
      while (bytes.length > 0) bytes = bytes.subarray(await writeSome(bytes));
    }
    writing = undefined;
  }

  return {
    async write(line: string): Promise<void> {
      buffered += `${line}\n`;
      writing ??= drain();
      if (buffered.length > BUFFERED_CHARACTERS) await writing;
    },
    async flush(): Promise<void> {
      await writing;
    },
  };
}

function writeSome(bytes: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    write(RECORDS, bytes, (error, written) => (error ? reject(error) : resolve(written)));
  });
}

/**
 * Ends the process with a sentence and exit code 13 if nothing is left that could settle a promise of its program. Node
 * itself does that only for an `await` at the top level of an ES module, and the programs of the bundle are CommonJS.
 */
export function endWhenStuck(sentence: string): void {
  process.on('beforeExit', () => {
    process.stderr.write(`${sentence}\n`, () => process.exit(13));
  });
}

/** Writes the result. Call this last, because a run counts as failed unless it wrote a result. */
export function writeResult(result: object): void {
  writeSync(RESULT, JSON.stringify(result));
}

export function writeLog(level: string, text: string): void {
  writeForFlowhook({ flowhook: 'log', level, text: text.slice(0, MAX_TEXT) });
}

/** Limits progress reports to five per second. `flush` writes the latest progress. */
export function createProgress() {
  let pending: { pages?: number; message?: string } | undefined;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    if (pending !== undefined) writeForFlowhook({ flowhook: 'progress', ...pending });
    pending = undefined;
  }

  return {
    flush,
    report(said: { pages?: number; message?: string }): void {
      pending = { ...pending, ...said };
      if (typeof pending.message === 'string') pending.message = pending.message.slice(0, MAX_TEXT);
      if (timer !== undefined) return;
      flush();
      timer = setTimeout(() => {
        timer = undefined;
        flush();
      }, PROGRESS_MS).unref();
    },
  };
}

/**
 * Writes a line that `stderr.ts` interprets. It starts with a line break, because the module may have written an
 * unfinished line.
 */
function writeForFlowhook(said: object): void {
  process.stderr.write(`\n${JSON.stringify(said)}\n`);
}

/** Returns the error message for a module whose default export is not a function. */
export function notAFunction(found: unknown): string {
  return found === undefined
    ? 'The module has no default export. Export a function that yields records: export default async function* (ctx) { … }'
    : `The default export must be a function that yields records, found ${nameOf(found)}`;
}

/** Returns the text of an error and its causes, without the stack frames of Node and of our own programs. */
export function usefulPart(error: unknown): string {
  return inspect(error, { depth: 4 })
    .split('\n')
    .filter((line) => !/^\s+at .*(?:node:|module-harness\.|\(<anonymous>\))/.test(line))
    .join('\n');
}

/** Describes the type of a value for an error message, such as `an array` or `a number (5)`. */
export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return `an object of type ${value.constructor?.name ?? 'unknown'}`;
  return `a ${typeof value} (${inspect(value).slice(0, 80)})`;
}
