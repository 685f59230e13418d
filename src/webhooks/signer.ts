/**
 * Signs messages in batches, in a thread of its own.
 *
 * An ed25519 signature takes 33 µs. Measured while a backlog is sent: one job of Node's thread pool for each message adds
 * 10 µs on the event loop and 8 µs in the pool for the transfer; in batches, the event loop spends 2 µs a message. A
 * single message is signed at once, because its transfer would cost nearly as much: a quiet service has no such thread.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Signable, type SigningKeys, signatures } from './sign.ts';
import type { Signed, ToSign } from './sign-thread.ts';

/** About two milliseconds of work for the thread. */
const MAX_BATCH = 64;
/** Batches queued at the thread, so that it need not wait for the event loop between two. */
const MAX_UNDER_WAY = 2;

interface Waiting {
  message: Signable;
  keys: SigningKeys;
  resolve(signatures: string): void;
  reject(error: unknown): void;
}

export class Signer {
  readonly #open: () => Worker;
  readonly #waiting: Waiting[] = [];
  /** Batches sent to the thread, in order. */
  readonly #underWay: Waiting[][] = [];
  #isFlushing = false;
  #thread: Worker | undefined;

  /** @param open starts the thread; tests pass their own */
  constructor(open: () => Worker = openThread) {
    this.#open = open;
  }

  /** Resolves with the value of `webhook-signature`. The caller limits how many are requested at once. */
  sign(message: Signable, keys: SigningKeys): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, keys, resolve, reject });
      this.#flushSoon();
    });
  }

  /** Ends the thread; its unfinished batches are signed in this one. The next batch starts a new thread. */
  async close(): Promise<void> {
    await this.#thread?.terminate();
  }

  /** Flushes after this turn of the event loop, so that messages of the same turn form one batch. */
  #flushSoon(): void {
    if (this.#isFlushing || this.#underWay.length >= MAX_UNDER_WAY) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length <= 1 && this.#underWay.length === 0) {
      signHere(batch);
      return;
    }
    this.#underWay.push(batch);
    this.#thread ??= this.#start();
    this.#thread.ref();
    this.#thread.postMessage(pack(batch));
  }

  #start(): Worker {
    const thread = this.#open();
    thread.on('message', (signed: Signed) => {
      const batch = this.#underWay.shift() ?? [];
      if (this.#underWay.length === 0) thread.unref();
      for (const [place, one] of batch.entries()) one.resolve(signed[place] as string);
      if (this.#waiting.length > 0) this.#flushSoon();
    });
    // Whatever the cause: on exit, each message is signed by itself below, and only a faulty one fails.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.#thread = undefined;
      signHere(this.#underWay.splice(0).flat());
      if (this.#waiting.length > 0) this.#flushSoon();
    });
    return thread;
  }
}

function signHere(batch: readonly Waiting[]): void {
  for (const { message, keys, resolve, reject } of batch) {
    try {
      resolve(signatures(message, keys));
    } catch (error) {
      reject(error);
    }
  }
}

function pack(batch: readonly Waiting[]): ToSign {
  const places = new Map<SigningKeys, number>();
  const messages = batch.map(({ message: { id, timestamp, body }, keys }) => {
    const place = places.get(keys) ?? places.size;
    places.set(keys, place);
    return { id, timestamp, body, keys: place };
  });
  return { keys: [...places.keys()].map(copied), messages };
}

/** Copies the secrets: a small Buffer is a slice of a large pool, all of which would be transferred. */
function copied({ secrets, privateKey }: SigningKeys): SigningKeys {
  return { secrets: secrets.map((secret) => new Uint8Array(secret)), privateKey };
}

function openThread(): Worker {
  // The extension of this file, so that compiled code finds the compiled thread.
  return new Worker(new URL(`./sign-thread${extname(import.meta.url)}`, import.meta.url));
}
