/** Reads records from a child: NDJSON lines in batches, with back-pressure and bounds. */
import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';

/** One record's JSON text may be this long. */
export const MAX_LINE_BYTES = 1 << 20;
const MAX_BATCH_LINES = 500;
const MAX_BATCH_BYTES = 1 << 20;
/** Once the child is gone, what it wrote is in the pipe already: nobody waits longer than this for more. */
const IDLE_MS = 1_000;

export interface Lines {
  /** The lines, at most 500 or about 1 MiB a batch. Can be read once. */
  batches: AsyncIterable<string[]>;
  /** Resolves when nothing more will be read: all of it was, nobody wants it, or the output was at fault. */
  over: Promise<'all' | 'abandoned' | { mistake: string }>;
  /** Says that the child has ended. To be called in the same turn as `abandon` when it has failed. */
  writersGone(): void;
  /** Throws away what has not been read. */
  abandon(): void;
}

/**
 * Splits a stream into lines. Blank lines are skipped; CRLF, a byte order mark and a last line without a line
 * break are fine; a line over 1 MiB and bytes that are not UTF-8 end the reading. Not iterating leaves the bytes
 * in the pipe, which stops the child when the pipe is full.
 */
export function readLines(stream: Readable): Lines {
  const over = Promise.withResolvers<'all' | 'abandoned' | { mistake: string }>();
  const gone = Promise.withResolvers<void>();
  let isGone = false;
  let isAbandoned = false;
  let isIdle = false;
  let wake = (): void => {};
  // The listeners must be there from the start: without one for `readable`, ChildProcess throws away what has
  // not been read when the process exits.
  for (const event of ['readable', 'end', 'close', 'error']) stream.on(event, () => wake());

  async function* batches(): AsyncGenerator<string[]> {
    const splitter = createSplitter();
    try {
      while (!stream.readableEnded && !stream.destroyed) {
        const chunk = stream.read() as Buffer | null;
        if (chunk !== null) {
          splitter.push(chunk);
          while (splitter.isFull()) yield splitter.take();
        } else if (splitter.isEmpty()) {
          await change();
        } else {
          yield splitter.take();
        }
      }
      // A last line without a line break is a record only if the child ended well: one that was killed while
      // it wrote leaves half a record, and would be blamed for that.
      await gone.promise;
      if (isAbandoned) return;
      if (!stream.readableEnded && !isIdle) throw new OutputMistake('The output broke off before its end');
      splitter.finish();
      while (!splitter.isEmpty()) yield splitter.take();
      over.resolve('all');
    } catch (error) {
      if (!(error instanceof OutputMistake)) throw error;
      over.resolve({ mistake: error.message });
    } finally {
      abandon();
    }
  }

  /** Waits until the stream has news. Nothing is missed: the listeners are called in a later turn. */
  async function change(): Promise<void> {
    const news = Promise.withResolvers<void>();
    wake = news.resolve;
    const idle = isGone ? setTimeout(giveUp, IDLE_MS) : undefined;
    await news.promise;
    clearTimeout(idle);
  }

  /** A process that left the group holds the pipe open: what the child itself wrote has been read. */
  function giveUp(): void {
    isIdle = true;
    stream.destroy();
  }

  function abandon(): void {
    isAbandoned = true;
    over.resolve('abandoned');
    gone.resolve();
    stream.destroy();
  }

  return {
    batches: batches(),
    over: over.promise,
    writersGone: () => {
      isGone = true;
      gone.resolve();
      wake();
    },
    abandon,
  };
}

class OutputMistake extends Error {}

/** Holds the lines that were read and not yet taken, and the beginning of the line that is still coming. */
function createSplitter() {
  let lines: string[] = [];
  let bytes = 0;
  let count = 0;
  let partial: Buffer[] = [];
  let partialBytes = 0;

  function add(text: Buffer): void {
    if (!isUtf8(text))
      throw new OutputMistake(`The output after line ${count} is not UTF-8. Records are UTF-8 JSON`);
    const all = text.toString();
    for (const line of (count === 0 && all.startsWith('\ufeff') ? all.slice(1) : all).split('\n')) {
      count++;
      if (line.trim() !== '') lines.push(line.endsWith('\r') ? line.slice(0, -1) : line);
    }
    bytes += text.length;
  }

  return {
    push(chunk: Buffer): void {
      const last = chunk.lastIndexOf(0x0a);
      // Only the line that began in an earlier chunk can be too long: a chunk itself is far smaller.
      if (partialBytes + (last === -1 ? chunk.length : chunk.indexOf(0x0a)) > MAX_LINE_BYTES) {
        throw new OutputMistake(
          `Line ${count + 1} of the output is longer than 1 MiB. Records are one JSON object a line`,
        );
      }
      if (last !== -1) {
        add(Buffer.concat([...partial, chunk.subarray(0, last)]));
        partial = [];
        partialBytes = 0;
      }
      const rest = chunk.subarray(last + 1);
      if (rest.length > 0) partial.push(rest);
      partialBytes += rest.length;
    },
    finish(): void {
      if (partialBytes > 0) add(Buffer.concat(partial));
      partial = [];
      partialBytes = 0;
    },
    isEmpty: () => lines.length === 0,
    isFull: () => lines.length >= MAX_BATCH_LINES || bytes >= MAX_BATCH_BYTES,
    take(): string[] {
      const batch = lines.slice(0, MAX_BATCH_LINES);
      lines = lines.slice(MAX_BATCH_LINES);
      // What is left came in one chunk, so it is small: its size only matters once more is added.
      bytes = 0;
      return batch;
    },
  };
}
