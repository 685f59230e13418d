/**
 * The body thread: reads whole versions on a read-only connection of its own, formats and compresses them, and writes
 * them into files that the main thread has opened. So a large read does not block the event loop.
 */
import { writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openReader } from '../store/open.ts';
import type { StoreReader } from '../store/store.ts';
import { type Body, bodyOf, VersionGoneError } from './read.ts';

/** What the thread is started with. */
export interface BodyThreadData {
  databaseUrl: string;
}

/** Messages to the thread. Every body that is begun is answered with a last message, also after `stop`. */
export type ToBodies =
  | { body: number; begin: Body; fd: number }
  | { body: number; stop: true }
  | { close: true };

/**
 * Messages from the thread. `length`: bytes in the file so far. `not_written`: it was stopped, or writing the file
 * failed. `gone`: the version is no longer complete (pruned or erased from), so readers must be broken off.
 */
export type FromBodies = { body: number } & (
  | { length: number }
  | { ended: 'complete' | 'not_written' }
  | { failed: { gone: boolean; sentence: string } }
);

/** Bytes written between two `length` messages: each message wakes the event loop and all readers of the file. */
const TELL_BYTES = 1_048_576;
/** On Linux it applies to the calling thread only, so that requests and writes take precedence. */
const NICENESS = 19;

if (parentPort !== null) {
  if (process.platform === 'linux') setPriority(0, NICENESS);
  serve(parentPort, await openReader((workerData as BodyThreadData).databaseUrl));
}

function serve(port: MessagePort, store: StoreReader): void {
  const going = new Set<number>();

  port.on('message', async (message: ToBodies) => {
    if ('close' in message) {
      await store.close();
      port.close();
    } else if ('stop' in message) {
      going.delete(message.body);
    } else {
      const { body } = message;
      going.add(body);
      port.postMessage({ body, ...(await make(message)) } satisfies FromBodies);
      going.delete(body);
    }
  });

  async function make(asked: {
    body: number;
    begin: Body;
    fd: number;
  }): Promise<{ ended: 'complete' | 'not_written' } | { failed: { gone: boolean; sentence: string } }> {
    const { body, begin, fd } = asked;
    let length = 0;
    let told = 0;
    const tell = () => {
      if (length > told) port.postMessage({ body, length } satisfies FromBodies);
      told = length;
    };
    try {
      for await (const bytes of bodyOf(store, begin)) {
        if (!going.has(body) || !writeAll(fd, bytes, length)) return { ended: 'not_written' };
        length += bytes.length;
        // The first bytes are reported at once.
        if (told === 0 || length - told >= TELL_BYTES) tell();
        if (begin.encoding === 'identity') free(bytes);
      }
      tell();
      return { ended: 'complete' };
    } catch (error) {
      const gone = error instanceof VersionGoneError;
      return { failed: { gone, sentence: error instanceof Error ? error.message : String(error) } };
    }
  }
}

/** Frees a page's memory at once: leaving it to the garbage collector took a sixth of the time. */
function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/** Returns whether the write succeeded: it fails when the disk is full. */
function writeAll(fd: number, bytes: Uint8Array, at: number): boolean {
  try {
    for (let done = 0; done < bytes.length; )
      done += writeSync(fd, bytes, done, bytes.length - done, at + done);
    return true;
  } catch {
    return false;
  }
}
