/** What our own programs in a child process write for the server: records, progress, log lines and a result. */
import { write, writeSync } from 'node:fs';

/** Descriptors: see `child.ts`. */
const RECORDS = 3;
const RESULT = 4;
/** More than this is not held back before whoever writes has to wait. */
const BUFFERED_CHARACTERS = 64 * 1024;
/** A longer text of one call is cut: as JSON it must fit into one line of the log (see `stderr.ts`). */
const MAX_TEXT = 10_000;
const PROGRESS_MS = 200;

/**
 * Writes lines to the records pipe. A full pipe keeps only the generator waiting: the event loop goes on, so
 * that the module still sees its signal.
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

/** The last that a program writes: without it, its run has not ended well. */
export function writeResult(result: object): void {
  writeSync(RESULT, JSON.stringify(result));
}

export function tellLog(level: string, text: string): void {
  tellFlowhook({ flowhook: 'log', level, text: text.slice(0, MAX_TEXT) });
}

/** Tells of progress a few times a second, however often it is reported, and at the end. */
export function createProgress() {
  let news: { pages?: number; message?: string } | undefined;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    if (news !== undefined) tellFlowhook({ flowhook: 'progress', ...news });
    news = undefined;
  }

  return {
    flush,
    report(said: { pages?: number; message?: string }): void {
      news = { ...news, ...said };
      if (typeof news.message === 'string') news.message = news.message.slice(0, MAX_TEXT);
      if (timer !== undefined) return;
      flush();
      timer = setTimeout(() => {
        timer = undefined;
        flush();
      }, PROGRESS_MS).unref();
    },
  };
}

/** One line for `log-line.ts`, at the beginning of a line whatever the module itself has just written. */
function tellFlowhook(said: object): void {
  process.stderr.write(`\n${JSON.stringify(said)}\n`);
}
