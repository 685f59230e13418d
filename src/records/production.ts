/**
 * One making of a representation: bytes are made once, written to a file, and read by any number of readers.
 *
 *     source ──▶ latest chunk (memory) ──▶ file
 *                      │                    │
 *                      ▼                    ▼
 *              readers that keep up   readers that do not
 *
 * The making waits for nobody: a reader that is slow reads what it missed from the file, one that goes is not
 * missed. When there can be no file (the disk is full, or the bound is reached) the making ends, and each reader
 * goes on with a source of its own, whose first bytes it leaves out: a source makes the same bytes every time.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';

/** What a reader is handed at a time when it reads from the file. */
const READ_BYTES = 256 * 1_024;
const READ_AHEAD_BYTES = 512 * 1_024;

export interface ProductionInput {
  path: string;
  /** Makes the same bytes every time. */
  source(): AsyncIterable<Uint8Array>;
  /** Whether the file may grow by so much; once refused, it is given up. */
  admit(bytes: number): Promise<boolean>;
  /** What has to be there before the file is opened: its directory. */
  before(): Promise<unknown>;
}

export class Production {
  /** Resolves with the length of the file once it is complete and on disk; with nothing when there is none. */
  readonly finished: Promise<number | undefined>;
  #source: ProductionInput['source'] | undefined;
  readonly #readers = new Set<Reader>();
  #file: FileHandle | undefined;
  /** Bytes made so far; the latest of them are in `#latest`, all before it in the file. */
  #length = 0;
  #latest: Uint8Array = new Uint8Array();
  #writing: Promise<unknown> = Promise.resolve();
  #state: 'making' | 'done' | 'failed' | 'given up' = 'making';
  #error: Error | undefined;

  constructor(input: ProductionInput) {
    this.#source = input.source;
    this.finished = this.#run(input);
  }

  /** Whether one more reader gains anything. */
  get joinable(): boolean {
    return this.#state === 'making' || (this.#state === 'done' && this.#file !== undefined);
  }

  /** A stream of everything from the first byte on. */
  read(): Readable {
    const reader: Reader = { position: 0, wake: undefined, own: undefined };
    this.#readers.add(reader);
    const production = this;
    return new Readable({
      highWaterMark: READ_AHEAD_BYTES,
      read() {
        production.#next(reader).then(
          (bytes) => this.push(bytes),
          (error) => this.destroy(error),
        );
      },
      destroy(error, done) {
        production.#leave(reader);
        done(error);
      },
    });
  }

  /** Ends the making, if it is not over, and its readers with an error. */
  abort(error: Error): void {
    if (this.#state === 'failed') return;
    this.#state = 'failed';
    this.#error = error;
    this.#wakeAll();
  }

  async #run(input: ProductionInput): Promise<number | undefined> {
    try {
      await this.#make(input);
      await this.#writing;
      if (this.#state === 'making') this.#state = 'done';
    } catch (error) {
      if (this.#state === 'making') this.abort(error as Error);
      await this.#writing;
    }
    this.#wakeAll();
    this.#closeIfLast();
    return this.#state === 'done' ? this.#length : undefined;
  }

  async #make({ path, admit, before, source }: ProductionInput): Promise<void> {
    const file = await before()
      .then(() => open(path, 'wx+', 0o600))
      .catch(() => undefined);
    this.#file = file;
    if (file === undefined) this.#state = 'given up';
    else if (this.#state === 'making') {
      for await (const bytes of source()) {
        if (bytes.length === 0) continue;
        await this.#writing;
        if (!(await admit(bytes.length)) && this.#state === 'making') this.#state = 'given up';
        if (this.#state !== 'making') return;
        this.#latest = bytes;
        this.#length += bytes.length;
        this.#write(file, bytes);
        this.#wakeAll();
      }
    }
  }

  /** Starts to write the latest chunk; the next one waits for its end. */
  #write(file: FileHandle, bytes: Uint8Array): void {
    const at = this.#length - bytes.length;
    this.#writing = writeAll(file, bytes, at).catch(() => {
      if (this.#state === 'making') this.#state = 'given up';
    });
  }

  async #next(reader: Reader): Promise<Uint8Array | null> {
    for (;;) {
      if (!this.#readers.has(reader)) return null;
      if (this.#state === 'failed') throw this.#error;
      if (this.#state === 'given up') {
        reader.own ??= without(reader.position, (this.#source as ProductionInput['source'])());
        return (await reader.own.next()).value ?? null;
      }
      const latestAt = this.#length - this.#latest.length;
      if (reader.position >= latestAt && reader.position < this.#length) {
        const bytes = this.#latest.subarray(reader.position - latestAt);
        reader.position += bytes.length;
        return bytes;
      }
      if (reader.position < latestAt) {
        const length = Math.min(READ_BYTES, latestAt - reader.position);
        const { bytesRead, buffer } = await (this.#file as FileHandle).read(
          Buffer.allocUnsafeSlow(length),
          0,
          length,
          reader.position,
        );
        if (bytesRead === 0) throw new Error('The file of a representation ended early');
        reader.position += bytesRead;
        return buffer.subarray(0, bytesRead);
      }
      if (this.#state === 'done') return null;
      await new Promise<void>((resolve) => {
        reader.wake = resolve;
      });
    }
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader);
    reader.wake?.();
    reader.own?.return().catch(() => {});
    this.#closeIfLast();
  }

  #wakeAll(): void {
    for (const reader of this.#readers) reader.wake?.();
  }

  #closeIfLast(): void {
    if (this.#state === 'making' || this.#readers.size > 0) return;
    // Waits for a read that is under way.
    this.#file?.close().catch(() => {});
    this.#file = undefined;
    // A kept body may remember its making for days: neither the bytes nor the first reader's request with it.
    this.#latest = new Uint8Array();
    this.#source = undefined;
  }
}

interface Reader {
  position: number;
  wake: (() => void) | undefined;
  /** What it reads from once the file is given up. */
  own: AsyncGenerator<Uint8Array, void> | undefined;
}

async function writeAll(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, at + written);
    written += bytesWritten;
  }
}

async function* without(bytes: number, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let left = bytes;
  for await (const chunk of source) {
    if (chunk.length > left) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}
