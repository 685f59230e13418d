/** Reads records from a child: NDJSON lines in batches, with back-pressure and bounds. */
import type { Readable } from 'node:stream';
import { splitLines } from '../../std/lines.ts';
import { MalformedError } from '../../std/splitter.ts';
import { formatSize } from '../size.ts';

/** One line may be this long. */
const MAX_LINE_BYTES = 1 << 20;
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
  /** Bytes that have been read so far. */
  bytes(): number;
}

/**
 * Splits a stream into lines. Blank lines are skipped; CRLF, a byte order mark and a last line without a line
 * break are fine; a line over 1 MiB and bytes that are not UTF-8 end the reading. Not iterating leaves the bytes
 * in the pipe, which stops the child when the pipe is full.
 *
 * @param maxBytes a longer output is at fault
 */
export function readLines(stream: Readable, maxBytes: number): Lines {
  const queue = createQueue(maxBytes);
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
    try {
      while (!stream.readableEnded && !stream.destroyed) {
        const chunk = stream.read() as Buffer | null;
        if (chunk !== null) {
          queue.push(chunk);
          while (queue.isFull()) yield queue.take();
        } else if (queue.isEmpty()) {
          await change();
        } else {
          yield queue.take();
        }
      }
      // A last line without a line break is a record only if the child ended well: one that was killed while
      // it wrote leaves half a record, and would be blamed for that.
      await gone.promise;
      if (isAbandoned) return;
      if (!stream.readableEnded && !isIdle) throw new OutputMistake('The output broke off before its end');
      queue.finish();
      while (!queue.isEmpty()) yield queue.take();
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
    bytes: queue.total,
  };
}

class OutputMistake extends Error {}

/** Holds the lines that were read and not yet taken. */
function createQueue(maxBytes: number) {
  const splitter = splitLines(MAX_LINE_BYTES);
  let lines: string[] = [];
  let bytes = 0;
  let total = 0;

  function add(cut: () => string[]): void {
    try {
      lines.push(...cut());
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      throw new OutputMistake(
        `The output cannot be read: ${error.message}. It must be UTF-8, one JSON object a line, at most 1 MiB each`,
      );
    }
  }

  return {
    push(chunk: Buffer): void {
      bytes += chunk.length;
      total += chunk.length;
      if (total > maxBytes) {
        throw new OutputMistake(
          `The output is larger than ${formatSize(maxBytes)} and was cut off. Raise \`limits.output\` if so much is meant`,
        );
      }
      add(() => splitter.push(chunk));
    },
    finish: () => add(() => splitter.end()),
    total: () => total,
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
