/** Reads the records of a child: NDJSON lines in batches. Back-pressure and limits bound the memory. */
import type { Readable } from 'node:stream';
import { formatSize } from '../../std/amounts.ts';
import { MalformedError, splitLines } from '../../std/lines.ts';

const MAX_LINE_BYTES = 1 << 20;
const MAX_BATCH_LINES = 2_000;
const MAX_BATCH_BYTES = 1 << 20;

interface Lines {
  /** The lines, in batches of at most 2,000 lines or about 1 MiB. The batches can be read only once. */
  batches: AsyncIterable<string[]>;
  /**
   * Resolves when reading has ended: everything was read (`all`), the rest was discarded (`abandoned`), or the output
   * was invalid (`mistake`).
   */
  over: Promise<'all' | 'abandoned' | { mistake: string }>;
  /**
   * Call this when the child has ended. If the child failed, also call `abandon` in the same turn of the event loop.
   */
  writersGone(): void;
  /** Discards unread output. */
  abandon(): void;
  /** Bytes read so far. */
  bytes(): number;
}

/**
 * Splits a stream into lines. Blank lines are skipped. CRLF, a byte order mark and a last line without a line break are
 * accepted. A line over 1 MiB or invalid UTF-8 ends the reading. Unread bytes stay in the pipe, and a full pipe blocks
 * the child.
 *
 * @param maxBytes limit for the whole output
 */
export function readLines(stream: Readable, maxBytes: number): Lines {
  const queue = createQueue(maxBytes);
  const over = Promise.withResolvers<'all' | 'abandoned' | { mistake: string }>();
  const gone = Promise.withResolvers<void>();
  let isAbandoned = false;
  let wake = (): void => {};
  // The listeners must be added immediately, because an `error` without a listener would end this process.
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
      // A last line without a line break counts as a record only if the child succeeded. A child that is killed while
      // writing leaves half a record, and the error would then be about this record instead of the kill.
      await gone.promise;
      if (isAbandoned) return;
      if (!stream.readableEnded) throw new OutputMistake('The output was cut off');
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

  /**
   * Waits for an event of the stream. No event is missed, because listeners are called in a later turn of the event
   * loop.
   */
  async function change(): Promise<void> {
    const news = Promise.withResolvers<void>();
    wake = news.resolve;
    await news.promise;
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
    writersGone: gone.resolve,
    abandon,
    bytes: queue.total,
  };
}

class OutputMistake extends Error {}

/** Creates a queue of lines that were read but not yet taken. */
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
        `The output cannot be read: ${error.message}. It must be UTF-8 with one JSON object per line, at most 1 MiB each`,
      );
    }
  }

  return {
    push(chunk: Buffer): void {
      bytes += chunk.length;
      total += chunk.length;
      if (total > maxBytes) {
        throw new OutputMistake(
          `The output is larger than ${formatSize(maxBytes)} and was cut off. Raise \`limits.output\` if the run needs more`,
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
      // The remaining lines are part of one chunk, so they are small. Their size matters only after more lines were
      // added.
      bytes = 0;
      return batch;
    },
  };
}
