/** Reads the records of a child: NDJSON lines in batches, with back-pressure and limits. */
import type { Readable } from 'node:stream';
import { formatSize } from '../../std/amounts.ts';
import { MalformedError, splitLines } from '../../std/lines.ts';

const MAX_LINE_BYTES = 1 << 20;
const MAX_BATCH_LINES = 500;
const MAX_BATCH_BYTES = 1 << 20;
/** How long to wait for more once the child is gone: what it wrote is in the pipe by then. */
const IDLE_MS = 1_000;

interface Lines {
  /** The lines, at most 500 or about 1 MiB a batch. Can be read once. */
  batches: AsyncIterable<string[]>;
  /** Resolves when no more will be read: everything was, the rest was abandoned, or the output was wrong. */
  over: Promise<'all' | 'abandoned' | { mistake: string }>;
  /** Tells that the child has ended. If it failed, call `abandon` in the same turn of the event loop. */
  writersGone(): void;
  /** Discards what has not been read. */
  abandon(): void;
  /** Bytes that have been read so far. */
  bytes(): number;
}

/**
 * Splits a stream into lines. Blank lines are skipped; CRLF, a byte order mark and a last line without a line break are
 * accepted; a line over 1 MiB and bytes that are not UTF-8 end the reading. Bytes that are not read stay in the pipe,
 * and a full pipe blocks the child.
 *
 * @param maxBytes limit of the whole output
 */
export function readLines(stream: Readable, maxBytes: number): Lines {
  const queue = createQueue(maxBytes);
  const over = Promise.withResolvers<'all' | 'abandoned' | { mistake: string }>();
  const gone = Promise.withResolvers<void>();
  let isGone = false;
  let isAbandoned = false;
  let isIdle = false;
  let wake = (): void => {};
  // The listeners must be added at once: without one for `readable`, ChildProcess discards unread output when the
  // process exits.
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
      // A last line without a line break is a record only if the child ended well: a child that is killed while it
      // writes leaves half a record, which would be reported instead of the kill.
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

  /** Waits for an event of the stream. None is missed, because the listeners are called in a later turn. */
  async function change(): Promise<void> {
    const news = Promise.withResolvers<void>();
    wake = news.resolve;
    const idle = isGone ? setTimeout(giveUp, IDLE_MS) : undefined;
    await news.promise;
    clearTimeout(idle);
  }

  /** An escaped process holds the pipe open; all that the child itself wrote has been read. */
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

/** The lines that were read and not yet taken. */
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
      // The rest came in one chunk, so it is small; its size matters only once more is added.
      bytes = 0;
      return batch;
    },
  };
}
