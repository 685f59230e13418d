/**
 * Signs what has gathered at the moment together, in a thread of its own.
 *
 * An ed25519 signature takes 33 µs. Measured while a backlog goes out: one job of Node's thread pool for each costs
 * the event loop another 10 and the pool 8 for the way there and back; a batch for a thread costs the loop 2 a message.
 * One message alone is signed at once, for its way would cost nearly as much: a quiet service never starts the thread.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Signable, type SigningKeys, signatures } from './sign.ts';
import type { Signed, ToSign } from './sign-thread.ts';

/** Two milliseconds for the thread: whatever gathers meanwhile does not wait for longer. */
const MAX_BATCH = 64;
/** Batches that the thread has at once, so that it need not wait for the loop between two. */
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
  /** What the thread is at, in order. */
  readonly #underWay: Waiting[][] = [];
  #isFlushing = false;
  #thread: Worker | undefined;

  /** @param open makes the thread; for tests that end it */
  constructor(open: () => Worker = openThread) {
    this.#open = open;
  }

  /** Answers the value of `webhook-signature`. The caller bounds how many it asks for at once. */
  sign(message: Signable, keys: SigningKeys): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, keys, resolve, reject });
      this.#flushSoon();
    });
  }

  /** Ends the thread; what it is at is signed here. The next batch starts another one. */
  async close(): Promise<void> {
    await this.#thread?.terminate();
  }

  /** When this turn of the event loop is over, for what it still brings is signed with the others. */
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
    // Whatever it died of: here each message is signed by itself, and only one that is at fault fails.
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

/** A small buffer is a part of a large one, all of which would go along. */
function copied({ secrets, privateKey }: SigningKeys): SigningKeys {
  return { secrets: secrets.map((secret) => new Uint8Array(secret)), privateKey };
}

function openThread(): Worker {
  // Derived from this file's own name, so that the compiled form finds the compiled thread.
  return new Worker(new URL(`./sign-thread${extname(import.meta.url)}`, import.meta.url));
}
