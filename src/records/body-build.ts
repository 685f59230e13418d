/**
 * One making of a representation: a body is written into a file once, and read from it by any number of readers
 * while it grows. The making waits for nobody; a reader that is slow costs nothing but its own memory, one that goes
 * is not missed. When there can be no file (the disk is full, or the bound is reached) the making ends, and each
 * reader goes on with a source of its own, whose first bytes it leaves out: a source makes the same bytes every
 * time.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { BodyReader } from './body-reader.ts';

export interface BodyBuildInput {
  path: string;
  /** Writes the body into the open file and settles when it does so no more. Rejects when the source fails. */
  write(
    fd: number,
    onLength: (length: number) => void,
    signal: AbortSignal,
  ): Promise<'complete' | 'not_written'>;
  /** Makes the same bytes, for a reader that cannot have them from the file. */
  source(): AsyncIterable<Uint8Array>;
  /** Whether the file may grow by so much; once refused, it is given up. */
  admit(bytes: number): Promise<boolean>;
  /** What has to be there before the file is opened: its directory. */
  before(): Promise<unknown>;
}

export class BodyBuild {
  /** Resolves with the length of the file once it is complete; with nothing when there is none. */
  readonly finished: Promise<number | undefined>;
  #source: BodyBuildInput['source'] | undefined;
  readonly #readers = new Set<Reader>();
  #file: FileHandle | undefined;
  /** Bytes that stand in the file. */
  #length = 0;
  #admitting: Promise<unknown> = Promise.resolve();
  readonly #stop = new AbortController();
  readonly #broken = new AbortController();
  #writing = true;
  #refused = false;
  #state: 'making' | 'done' | 'failed' | 'given up' = 'making';

  constructor(input: BodyBuildInput) {
    this.#source = input.source;
    this.finished = this.#run(input);
  }

  /** Whether one more reader gains anything. */
  get joinable(): boolean {
    return this.#state === 'making' || (this.#state === 'done' && this.#file !== undefined);
  }

  /** Whether the file took no more: the disk is full, as a rule. */
  get wasRefused(): boolean {
    return this.#refused;
  }

  /** Reads everything from the first byte on. */
  read(): BodyReader {
    const reader: Reader = { position: 0, wake: undefined, own: undefined, rest: undefined };
    this.#readers.add(reader);
    return {
      broken: this.#broken.signal,
      read: (into) => this.#read(reader, into),
      close: () => this.#leave(reader),
    };
  }

  /** Ends the making, if it is not over, and its readers with an error. */
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
      if (this.#state === 'making') {
        const fd = (this.#file as FileHandle).fd;
        const ended = await write(fd, (length) => this.#grow(length, admit), this.#stop.signal);
        await this.#admitting;
        this.#refused = ended === 'not_written' && this.#state === 'making';
        this.#end(ended === 'complete' ? 'done' : 'given up');
      }
    } catch (error) {
      if (this.#state === 'making') this.abort(error as Error);
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
      if (this.#state === 'making' && !(await admit(bytes))) this.#end('given up');
    });
  }

  /** What the making came to: the first word counts, but for an abort, which also breaks off a body that is done. */
  #end(state: 'done' | 'failed' | 'given up'): void {
    if (this.#state !== 'making' && state !== 'failed') return;
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
    // Waits for a read that is under way. One that was given up is of use to nobody, and a removed file keeps its
    // place on the disk, which may be full, for as long as it is open.
    this.#file?.close().catch(() => {});
    this.#file = undefined;
    if (!isLast) return;
    // A kept body may remember its making for days: not the first reader's request with it.
    this.#source = undefined;
  }
}

interface Reader {
  position: number;
  wake: (() => void) | undefined;
  /** What it reads from once the file is given up. */
  own: AsyncGenerator<Uint8Array, void> | undefined;
  /** What it came with and has not been read. */
  rest: Uint8Array | undefined;
}

async function* without(bytes: number, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let left = bytes;
  for await (const chunk of source) {
    if (chunk.length > left) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}
