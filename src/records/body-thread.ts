/**
 * The body thread: reads whole versions on its own read-only connection, formats and compresses them, and writes them
 * to files that the main thread has opened, so that large reads do not block the event loop.
 */
import { writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openReader } from '../store/open.ts';
import { type Body, bodyOf, VersionGoneError } from './read.ts';

export interface BodyThreadData {
  databaseUrl: string;
}

/** Messages to the body thread. The thread sends a final message for every `begin`, even after `stop`. */
export type ToBodies =
  | { body: number; begin: Body; fd: number }
  | { body: number; stop: true }
  | { close: true };

/**
 * Messages from the body thread. `length` is the number of bytes in the file so far. `not_written` means that the build
 * was stopped, or that writing the file failed. `gone` means that the version is no longer complete, because it was
 * pruned or records were erased from it, so its readers must be aborted.
 */
export type FromBodies = { body: number } & (
  | { length: number }
  | { ended: 'complete' | 'not_written' }
  | { failed: { gone: boolean; sentence: string } }
);

/**
 * Number of bytes written between two `length` messages. Each message wakes the event loop and all readers of the file.
 */
const REPORT_BYTES = 1_048_576;
/**
 * The body thread has a lower priority, so that requests and writes take precedence. Only set on Linux, where niceness
 * applies only to the calling thread.
 */
const NICENESS = 19;

if (parentPort !== null) {
  if (process.platform === 'linux') setPriority(0, NICENESS);
  serve(parentPort);
}

async function serve(port: MessagePort): Promise<void> {
  const store = await openReader((workerData as BodyThreadData).databaseUrl);
  const active = new Set<number>();

  port.on('message', async (message: ToBodies) => {
    if ('close' in message) {
      await store.close();
      port.close();
    } else if ('stop' in message) {
      active.delete(message.body);
    } else {
      const { body } = message;
      active.add(body);
      port.postMessage({ body, ...(await make(message)) } satisfies FromBodies);
      active.delete(body);
    }
  });

  async function make(asked: {
    body: number;
    begin: Body;
    fd: number;
  }): Promise<{ ended: 'complete' | 'not_written' } | { failed: { gone: boolean; sentence: string } }> {
    const { body, begin, fd } = asked;
    let length = 0;
    let reported = 0;
    const report = () => {
      if (length > reported) port.postMessage({ body, length } satisfies FromBodies);
      reported = length;
    };
    try {
      for await (const bytes of bodyOf(store, begin)) {
        if (!active.has(body) || !writeAll(fd, bytes, length)) return { ended: 'not_written' };
        length += bytes.length;
        // The first bytes are reported immediately.
        if (reported === 0 || length - reported >= REPORT_BYTES) report();
        if (begin.encoding === 'identity') free(bytes);
      }
      report();
      return { ended: 'complete' };
    } catch (error) {
      const gone = error instanceof VersionGoneError;
      return { failed: { gone, sentence: error instanceof Error ? error.message : String(error) } };
    }
  }
}

/**
 * Frees the memory of a page immediately. Leaving the page to the garbage collector took a sixth of the thread's time.
 */
function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/** Writes bytes to a file. Returns whether the write succeeded: it fails if the disk is full. */
function writeAll(fd: number, bytes: Uint8Array, at: number): boolean {
  try {
    for (let done = 0; done < bytes.length; )
      done += writeSync(fd, bytes, done, bytes.length - done, at + done);
    return true;
  } catch {
    return false;
  }
}
