/**
 * The body thread: makes whole bodies on a connection of its own that cannot write, formats and compresses them,
 * and writes them into files that are open already. What a large read costs, the event loop does not feel.
 */
import { writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openReader } from '../store/open.ts';
import type { StoreReader } from '../store/store.ts';
import { bodyOf, type Representation } from './body.ts';
import { VersionGoneError } from './read.ts';

/** What the thread is started with. */
export interface BodyThreadData {
  databaseUrl: string;
}

/** What the thread is told. A body that is begun ends with a message, also when it is told to stop. */
export type ToBodies =
  | { body: number; begin: Representation; fd: number }
  | { body: number; stop: true }
  | { close: true };

/**
 * What the thread tells. `length` is what stands in the file by now. `not_written`: it was told to stop, or the
 * file could not take more. `gone` is whether the version is no longer whole, which readers must be told.
 */
export type FromBodies = { body: number } & (
  | { length: number }
  | { ended: 'complete' | 'not_written' }
  | { failed: { gone: boolean; sentence: string } }
);

/** What is written between two messages: each wakes the event loop, and all that read from the file. */
const TELL_BYTES = 1_048_576;
/** On Linux this holds for the calling thread alone: those who queue and write go first. */
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
    begin: Representation;
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
        // The first bytes at once.
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

/** Gives a page's memory back at once: left to the garbage collector, pages cost a sixth of the time. */
function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/** Answers whether the file took them: it does not when the disk is full. */
function writeAll(fd: number, bytes: Uint8Array, at: number): boolean {
  try {
    for (let done = 0; done < bytes.length; )
      done += writeSync(fd, bytes, done, bytes.length - done, at + done);
    return true;
  } catch {
    return false;
  }
}
