/**
 * Caches whole response bodies, so that a version is read from the database and compressed only once: large ones in
 * files, small ones in memory.
 */

import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowRef } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import { Shares } from '../std/fair-share.ts';
import type { Store } from '../store/store.ts';
import type { BodyWriter } from './body-writer.ts';
import {
  type Body,
  bodyOf,
  checkStillThere,
  mostBytes,
  nameOf,
  sameWorkflow,
  VersionGoneError,
  type VersionReader,
} from './read.ts';

/** Bodies built or waiting for their turn to be, shared by teams; further requests read from the database. */
const MAX_BUILDING = 16;
/** No body is built ahead while this many builds run, because requests wait for those, and may need the next. */
const MAX_BEFORE_AHEAD = 2;
const SWEEP_MS = 60_000;
/** How long nothing is built after a body could not be written. */
const PAUSE_MS = 60_000;

/** A body that can be read while it is being built: its file stays readable if it is evicted. */
export interface OpenBody {
  /** The length; undefined while it is being built. */
  readonly bytes: number | undefined;
  /**
   * Fills the beginning of `into` and returns the number of bytes read; 0 at the end, or at the `end` of a range. One
   * call at a time. The caller brings the buffer because a new chunk for each read would be 500 MB of garbage a second:
   * measured, its collection took a tenth of the event loop's time, in pauses of up to 12 ms.
   *
   * @throws VersionGoneError when the version is no longer whole; another Error when reading fails
   */
  read(into: Uint8Array): Promise<number>;
  /** Reads from `start` up to, not including, `end`. To be called before the first read. */
  seek(range: { start: number; end: number }): void;
  /** Aborted, with an Error as its reason, when the rest must not be sent. */
  readonly broken: AbortSignal;
  /** Must be called when reading is over. Calling it twice is harmless. */
  close(): void;
}

/** The file of a body, which is followed by its readers while the thread writes it. */
interface BodyFile {
  of: Body;
  path: string;
  /** Bytes in the file so far. */
  bytes: number;
  /** How many it needs at most, kept free for it while it is built. */
  most: number;
  isComplete: boolean;
  /** Resolves when there are more bytes, or when the build has ended. */
  grown: PromiseWithResolvers<void>;
  /** Aborted when what is in it must no longer be sent, or when it cannot be completed. */
  broken: AbortController;
  /** Resolves when nothing writes to the file any more. */
  ended: Promise<void>;
  /** Whether it was read since the body of the next version was last built ahead. */
  wasRead: boolean;
}

/**
 * The files are in one directory, which may be deleted at any time: a missing file is built again. Their total size is
 * bounded, and the least recently read ones are evicted first. `start` removes what an earlier process left.
 */
export class BodyCache {
  readonly #store: Store;
  readonly #writer: Pick<BodyWriter, 'write' | 'close'>;
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #log: Logger;
  /** By name, least recently read first. */
  readonly #files = new Map<string, BodyFile>();
  readonly #buildingOf = new Shares();
  readonly #small: SmallBodyCache;
  #bytes = 0;
  #buildCount = 0;
  /** By `performance.now()`: when bodies may be built again after one could not be written. */
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #removing: Promise<unknown> = Promise.resolve();
  #sweeping: Promise<void> = Promise.resolve();
  #running = false;

  /** @param options.maxBytes limit of all files together; 0 caches nothing */
  constructor(options: {
    store: Store;
    writer: Pick<BodyWriter, 'write' | 'close'>;
    directory: string;
    maxBytes: number;
    log: Logger;
  }) {
    this.#store = options.store;
    this.#small = new SmallBodyCache(options.store, options.maxBytes);
    this.#writer = options.writer;
    this.#directory = options.directory;
    this.#maxBytes = options.maxBytes;
    this.#log = options.log;
  }

  async start(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    await rm(this.#directory, { recursive: true, force: true });
    this.#timer = setInterval(() => void this.tick(), SWEEP_MS).unref();
  }

  /** Aborts the builds; resolves when all of their files are closed. */
  async stop(): Promise<void> {
    this.#running = false;
    clearInterval(this.#timer);
    const stopping = new Error('The service is stopping');
    await this.#breakOff(
      [...this.#files.values()].filter(({ isComplete }) => !isComplete),
      stopping,
    );
    await this.#sweeping;
    await this.#writer.close();
    this.#small.clear();
  }

  /** The number of cached files, and the bytes of all files, including those being built. */
  get size(): { files: number; bytes: number } {
    const complete = [...this.#files.values()].filter(({ isComplete }) => isComplete);
    return { files: complete.length, bytes: this.#bytes };
  }

  /** The length of a body whose file is complete. */
  bytesOf(of: Body): number | undefined {
    const file = this.#files.get(nameOf(of));
    return file?.isComplete === true ? file.bytes : undefined;
  }

  /** Reads a body that is too small for a file, and caches it in memory for a minute at most. */
  readSmall(of: Body): Promise<Buffer> {
    return this.#small.read(of);
  }

  /**
   * Opens a body, which is built where there is no file of it: readers follow the file, and it is completed even if all of
   * them leave. Resolves when there is something to read; with undefined when the body cannot be cached now.
   *
   * @throws VersionGoneError when the version is no longer whole
   */
  async open(of: Body): Promise<OpenBody | undefined> {
    const name = nameOf(of);
    for (;;) {
      const file = this.#files.get(name) ?? this.#begin(name, of);
      if (file === undefined) return undefined;
      file.wasRead = true;
      if (file.bytes === 0 && !file.isComplete) await file.grown.promise;
      const { broken } = file;
      if (broken.signal.reason instanceof VersionGoneError) throw broken.signal.reason;
      if (broken.signal.aborted) return undefined;
      const handle = await openWhole(file);
      // It may have been evicted, erased or replaced meanwhile.
      if (handle !== undefined && this.#files.get(name) === file) {
        this.#files.delete(name);
        this.#files.set(name, file);
        return reading(file, handle);
      }
      await handle?.close();
      if (this.#files.get(name) !== file) continue;
      // The directory was deleted. What is being built there is of use only to those who have opened it.
      if (!file.isComplete) return undefined;
      this.#remove(name);
    }
  }

  /**
   * Call it when a version was published: builds those of its bodies whose predecessors were read, so that the first
   * read finds them complete. A body that is not read has no successor built ahead. Resolves with whether a build was
   * started; never rejects.
   */
  async buildAhead(place: WorkflowRef): Promise<boolean> {
    const read = this.#of(place).filter(({ isComplete, wasRead }) => isComplete && wasRead);
    if (read.length === 0) return false;
    const version = await this.#store.records.version(place).catch(() => undefined);
    if (version === undefined) return false;
    let begun = false;
    for (const before of read) {
      if (before.of.version.number >= version.number) continue;
      before.wasRead = false;
      const next = { ...before.of, version };
      const name = nameOf(next);
      const building = [...this.#files.values()].filter(({ isComplete }) => !isComplete);
      if (this.#files.has(name) || building.length >= MAX_BEFORE_AHEAD) continue;
      begun = this.#begin(name, next) !== undefined || begun;
    }
    return begun;
  }

  /** Removes every body of a workflow and breaks off their readers, because records of it were erased. */
  async forget(place: WorkflowRef): Promise<void> {
    this.#small.forget(place);
    await this.#breakOff(this.#of(place), new VersionGoneError('Records were erased while they were read'));
  }

  /** Removes the bodies of versions that were pruned or erased from, and all small bodies, which are soon built again. */
  tick(): Promise<void> {
    this.#small.clear();
    this.#sweeping = this.#sweeping.then(() => this.#sweep()).catch(() => {});
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    for (const [name, { of, isComplete }] of [...this.#files]) {
      if (!this.#running) return;
      if (!isComplete) continue;
      try {
        await checkStillThere(this.#store, of.place, of.version);
      } catch (error) {
        if (!(error instanceof VersionGoneError)) throw error;
        this.#remove(name);
      }
    }
    await this.#removing;
  }

  #of(place: WorkflowRef): BodyFile[] {
    return [...this.#files.values()].filter(({ of }) => sameWorkflow(of.place, place));
  }

  async #breakOff(files: readonly BodyFile[], why: Error): Promise<void> {
    for (const file of files) this.#fail(file, why);
    await Promise.all(files.map(({ ended }) => ended));
    await this.#removing;
  }

  #begin(name: string, of: Body): BodyFile | undefined {
    if (!this.#running || performance.now() < this.#pausedUntil) return undefined;
    // As JSON, which other formats hardly exceed. Whatever has no room beside what is being built would break off readers.
    const most = mostBytes(of.version, 'json');
    let needed = most;
    for (const file of this.#files.values()) if (!file.isComplete) needed += file.most;
    if (needed > this.#maxBytes) return undefined;
    const { teamId } = of.place;
    if (!this.#buildingOf.admits(teamId, MAX_BUILDING)) return undefined;
    this.#buildingOf.add(teamId);
    this.#buildCount += 1;
    const file: BodyFile = {
      of,
      path: join(this.#directory, `${this.#buildCount}-${name}`),
      bytes: 0,
      most,
      isComplete: false,
      grown: Promise.withResolvers(),
      broken: new AbortController(),
      ended: Promise.resolve(),
      wasRead: false,
    };
    this.#files.set(name, file);
    file.ended = this.#build(file).finally(() => this.#buildingOf.remove(teamId));
    return file;
  }

  /** Never rejects. */
  async #build(file: BodyFile): Promise<void> {
    let handle: FileHandle | undefined;
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      handle = await open(file.path, 'wx', 0o600);
      const onLength = (length: number) => this.#grow(file, length);
      const { signal } = file.broken;
      const ended = await this.#writer.write({ fd: handle.fd, body: file.of, onLength, signal });
      if (ended !== 'complete') throw new Error('The file of a body was not written');
      // Before the wait: the removal of a file that was given up waits for this build.
      signal.throwIfAborted();
      await this.#removing;
      signal.throwIfAborted();
      file.isComplete = true;
      wake(file);
    } catch (error) {
      if (!file.broken.signal.aborted && !(error instanceof VersionGoneError))
        this.#pause(file, error as Error);
      this.#fail(file, error as Error);
    }
    await handle?.close().catch(() => {});
  }

  #grow(file: BodyFile, length: number): void {
    if (file.broken.signal.aborted) return;
    this.#bytes += length - file.bytes;
    file.bytes = length;
    for (const [name, { isComplete }] of this.#files) {
      if (this.#bytes <= this.#maxBytes) break;
      if (isComplete) this.#remove(name);
    }
    wake(file);
    if (this.#bytes <= this.#maxBytes) return;
    const full = new Error('What is being built at once is more than the cache may hold');
    this.#pause(file, full);
    this.#fail(file, full);
  }

  /** Pauses building, so that not every request fills a full disk again. */
  #pause({ path }: BodyFile, err: Error): void {
    this.#pausedUntil = performance.now() + PAUSE_MS;
    const meanwhile = 'the disk may be full. Reads go on without files';
    this.#log.warn({ err, path }, `representation.not_written: ${meanwhile}`);
  }

  #fail(file: BodyFile, why: Error): void {
    file.broken.abort(why);
    wake(file);
    const name = nameOf(file.of);
    if (this.#files.get(name) === file) this.#remove(name);
  }

  #remove(name: string): void {
    const file = this.#files.get(name);
    if (file === undefined) return;
    this.#files.delete(name);
    this.#bytes -= file.bytes;
    const ended = this.#removing;
    this.#removing = Promise.all([ended, file.ended])
      .then(() => rm(file.path, { force: true }))
      .catch(() => {});
  }
}

function wake(file: BodyFile): void {
  const { resolve } = file.grown;
  file.grown = Promise.withResolvers();
  resolve();
}

/** Opens a file unless something else has removed it, or truncated it. */
async function openWhole({ path, bytes }: BodyFile): Promise<FileHandle | undefined> {
  const handle = await open(path).catch(() => undefined);
  if (handle === undefined || (await handle.stat()).size >= bytes) return handle;
  await handle.close();
  return undefined;
}

function reading(file: BodyFile, handle: FileHandle): OpenBody {
  const broken = file.broken.signal;
  const bytes = file.isComplete ? file.bytes : undefined;
  let position = 0;
  let end = bytes;
  let isClosed = false;
  return {
    bytes,
    broken,
    seek(range) {
      position = range.start;
      end = range.end;
    },
    async read(into) {
      for (;;) {
        if (isClosed) return 0;
        broken.throwIfAborted();
        const length = Math.min(into.length, (end ?? file.bytes) - position);
        if (length > 0) {
          const { bytesRead } = await handle.read(into, 0, length, position);
          if (bytesRead === 0) throw new Error('The file of a body ended early');
          position += bytesRead;
          return bytesRead;
        }
        if (end !== undefined || file.isComplete) return 0;
        await file.grown.promise;
      }
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      // Node closes it when a read under way has ended.
      handle.close().catch(() => {});
    },
  };
}

/** Limit for all small bodies together. */
const MAX_SMALL_BYTES = 16 * 1_048_576;
/** Overhead counted for each entry: measured, 100,000 bodies of 12 bytes took 61 MB. */
const ENTRY_BYTES = 1_024;

/**
 * An LRU cache in memory: joining 1,000 records in the database takes longer than the rest of the request. The caller
 * decides which bodies are small.
 */
export class SmallBodyCache {
  readonly #store: VersionReader;
  readonly #maxBytes: number;
  /** By name, least recently read first. */
  readonly #kept = new Map<string, { place: WorkflowRef; bytes: Buffer }>();
  #bytes = 0;
  #forgotten = 0;

  /** @param maxBytes at most 16 MiB are used; 0 caches nothing */
  constructor(store: VersionReader, maxBytes: number) {
    this.#store = store;
    this.#maxBytes = Math.min(maxBytes, MAX_SMALL_BYTES);
  }

  /** @throws VersionGoneError as `readWhole` */
  async read(of: Body): Promise<Buffer> {
    const name = nameOf(of);
    const kept = this.#kept.get(name);
    if (kept !== undefined) {
      this.#kept.delete(name);
      this.#kept.set(name, kept);
      return kept.bytes;
    }
    const before = this.#forgotten;
    const parts: Uint8Array[] = [];
    for await (const part of bodyOf(this.#store, of)) parts.push(part);
    const bytes = joined(parts);
    // It may contain what was erased meanwhile; or another reader may have cached it already.
    if (before !== this.#forgotten || this.#kept.has(name)) return bytes;
    this.#kept.set(name, { place: of.place, bytes });
    this.#bytes += bytes.length + ENTRY_BYTES;
    for (const oldest of this.#kept.keys()) if (this.#bytes > this.#maxBytes) this.#drop(oldest);
    return bytes;
  }

  /** Drops the bodies of a workflow whose records were erased. */
  forget(place: WorkflowRef): void {
    this.#forgotten += 1;
    for (const [name, kept] of this.#kept) if (sameWorkflow(kept.place, place)) this.#drop(name);
  }

  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  #drop(name: string): void {
    const kept = this.#kept.get(name);
    if (kept === undefined) return;
    this.#bytes -= kept.bytes.length + ENTRY_BYTES;
    this.#kept.delete(name);
  }
}

/** In memory of its own: a slice of Node's buffer pool would keep 64 KiB alive. */
function joined(parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
