/**
 * Builds one cached body: it is written into a file once, and any number of readers follow the file while it grows. The
 * build never waits for a reader. When the file cannot be written (the disk is full, or the cache is), the build is
 * given up, and each reader continues from a source of its own, skipping the bytes that it already has: a source
 * produces the same bytes every time.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { BodyReader } from './body-reader.ts';

export interface BodyBuildInput {
  path: string;
  /** Writes the body into the open file; settles when nothing writes to it any more. Rejects when the source fails. */
  write(
    fd: number,
    onLength: (length: number) => void,
    signal: AbortSignal,
  ): Promise<'complete' | 'not_written'>;
  /** Produces the same bytes, for a reader that cannot get them from the file. */
  source(): AsyncIterable<Uint8Array>;
  /** Whether the file may grow by this many bytes; once refused, the build is given up. */
  admit(bytes: number): Promise<boolean>;
  /** Makes the directory of the file; called before the file is opened. */
  before(): Promise<unknown>;
}

export class BodyBuild {
  /** Resolves with the length of the complete file, or with undefined when there is none. */
  readonly finished: Promise<number | undefined>;
  #source: BodyBuildInput['source'] | undefined;
  readonly #readers = new Set<Reader>();
  #file: FileHandle | undefined;
  /** Bytes that are in the file. */
  #length = 0;
  #admitting: Promise<unknown> = Promise.resolve();
  readonly #stop = new AbortController();
  readonly #broken = new AbortController();
  #writing = true;
  #refused = false;
  #state: 'building' | 'done' | 'failed' | 'given up' = 'building';

  constructor(input: BodyBuildInput) {
    this.#source = input.source;
    this.finished = this.#run(input);
  }

  /** Whether `read` can serve another reader from the file. */
  get joinable(): boolean {
    return this.#state === 'building' || (this.#state === 'done' && this.#file !== undefined);
  }

  /** Whether writing the file failed: usually the disk is full. */
  get wasRefused(): boolean {
    return this.#refused;
  }

  /** A reader of the whole body. */
  read(): BodyReader {
    const reader: Reader = { position: 0, wake: undefined, own: undefined, rest: undefined };
    this.#readers.add(reader);
    return {
      broken: this.#broken.signal,
      read: (into) => this.#read(reader, into),
      close: () => this.#leave(reader),
    };
  }

  /** Ends the build, if it is still running, and breaks off its readers with an error. */
  abort(error: Error): void {
    if (this.#state === 'failed') return;
    this.#broken.abort(error);
    this.#end('failed');
  }

  async #run({ path, before, write, admit }: BodyBuildInput): Promise<number | undefined> {
    this.#file = await before()
      .then(() => open(path, 'wx+', 0o600))
      .catch(() => undefined);
    if (this.#file === undefined) this.#end('given up');
    try {
      if (this.#state === 'building') {
        const fd = (this.#file as FileHandle).fd;
        const ended = await write(fd, (length) => this.#grow(length, admit), this.#stop.signal);
        await this.#admitting;
        this.#refused = ended === 'not_written' && this.#state === 'building';
        this.#end(ended === 'complete' ? 'done' : 'given up');
      }
    } catch (error) {
      if (this.#state === 'building') this.abort(error as Error);
    }
    this.#writing = false;
    this.#closeIfLast();
    return this.#state === 'done' ? this.#length : undefined;
  }

  #grow(length: number, admit: BodyBuildInput['admit']): void {
    const bytes = length - this.#length;
    this.#length = length;
    this.#wakeAll();
    this.#admitting = this.#admitting.then(async () => {
      if (this.#state === 'building' && !(await admit(bytes))) this.#end('given up');
    });
  }

  /** Sets the final state. Only the first one counts, except that an abort also breaks off a body that is done. */
  #end(state: 'done' | 'failed' | 'given up'): void {
    if (this.#state !== 'building' && state !== 'failed') return;
    this.#state = state;
    this.#stop.abort();
    this.#wakeAll();
  }

  async #read(reader: Reader, into: Uint8Array): Promise<number> {
    for (;;) {
      if (!this.#readers.has(reader)) return 0;
      this.#broken.signal.throwIfAborted();
      if (this.#state === 'given up') return this.#readOwn(reader, into);
      const length = Math.min(into.length, this.#length - reader.position);
      if (length > 0) {
        const { bytesRead } = await (this.#file as FileHandle).read(into, 0, length, reader.position);
        if (bytesRead === 0) throw new Error('The file of a representation ended early');
        reader.position += bytesRead;
        return bytesRead;
      }
      if (this.#state === 'done') return 0;
      await new Promise<void>((resolve) => {
        reader.wake = resolve;
      });
    }
  }

  async #readOwn(reader: Reader, into: Uint8Array): Promise<number> {
    reader.own ??= without(reader.position, (this.#source as BodyBuildInput['source'])());
    reader.rest ??= (await reader.own.next()).value ?? undefined;
    if (reader.rest === undefined) return 0;
    const bytes = reader.rest.subarray(0, into.length);
    into.set(bytes);
    reader.rest = bytes.length < reader.rest.length ? reader.rest.subarray(bytes.length) : undefined;
    return bytes.length;
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
    if (this.#writing) return;
    const isLast = this.#readers.size === 0;
    if (!isLast && this.#state !== 'given up') return;
    // Node closes it after a read under way. A file that was given up is closed although readers are left, because a
    // removed file occupies the disk, which may be full, as long as it is open.
    this.#file?.close().catch(() => {});
    this.#file = undefined;
    if (!isLast) return;
    // The cache may hold this object for days, and must not hold the first reader's request with it.
    this.#source = undefined;
  }
}

interface Reader {
  position: number;
  wake: (() => void) | undefined;
  /** The source it reads from once the file is given up. */
  own: AsyncGenerator<Uint8Array, void> | undefined;
  /** The unread part of the source's last chunk. */
  rest: Uint8Array | undefined;
}

async function* without(bytes: number, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let left = bytes;
  for await (const chunk of source) {
    if (chunk.length > left) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}
