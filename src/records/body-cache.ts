/**
 * Caches whole response bodies, so that each body is built only once. Large bodies are cached in files, small bodies in
 * memory.
 */

import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowRef } from '../model/workflow.ts';
import type { Logger } from '../observe/log.ts';
import { Shares } from '../std/fair-share.ts';
import type { Store } from '../store/store.ts';
import type { BodyWriter } from './body-writer.ts';
import { type Body, checkStillThere, mostBytes, nameOf, sameWorkflow, VersionGoneError } from './read.ts';
import { SmallBodyCache } from './small-body.ts';

/**
 * Maximum number of bodies that are being built or waiting to be built, shared by teams. Requests for further bodies
 * read from the database.
 */
const MAX_BUILDING = 16;
/**
 * If this many builds are in progress, no body is built ahead of time, so that the bodies of waiting requests are built
 * first.
 */
const MAX_BEFORE_AHEAD = 2;
const SWEEP_MS = 60_000;
/** How long building pauses after writing a body has failed. */
const PAUSE_MS = 60_000;
/**
 * How long building pauses after the process had too many open files. This pause is shorter than `PAUSE_MS`, because
 * other requests soon close their files.
 */
const HANDLES_PAUSE_MS = 1_000;

/**
 * A body that can be read while it is being built. Its file stays readable even if the file is evicted from the cache.
 */
export interface OpenBody {
  /** The length in bytes; undefined while the body is being built. */
  readonly bytes: number | undefined;
  /**
   * Reads into the beginning of `into` and returns the number of bytes read; 0 at the end of the body or of the range.
   * Only one call may be pending at a time. The caller provides the buffer, because a new chunk for each read would
   * create 500 MB of garbage per second: collecting this garbage took 10 % of the event loop's time, in pauses of up to
   * 12 ms.
   *
   * @throws VersionGoneError if the version is no longer complete; another Error if reading fails
   */
  read(into: Uint8Array): Promise<number>;
  /**
   * Restricts reading to the bytes from `start` up to, but excluding, `end`. Call this method before the first read.
   */
  seek(range: { start: number; end: number }): void;
  /** Aborted if the rest of the body must not be sent. The reason of the abort is an Error. */
  readonly broken: AbortSignal;
  /** Closes the body; must be called after reading. Calling it twice is harmless. */
  close(): void;
}

/** The file of a body. Readers follow the file while the body thread writes it. */
interface BodyFile {
  of: Body;
  path: string;
  /**
   * The open file, set while the body is built. Readers share it, because opening the file again would delay their
   * first byte.
   */
  handle: SharedHandle | undefined;
  /** Bytes in the file so far. */
  bytes: number;
  /** Maximum size of the body, which is reserved while the body is built. */
  most: number;
  isComplete: boolean;
  /** Resolves when the file contains more bytes, or when the build has ended. */
  grown: PromiseWithResolvers<void>;
  /** Aborted if the contents of the file must no longer be sent, or if the file cannot be completed. */
  broken: AbortController;
  /** Resolves when nothing writes to the file anymore. */
  ended: Promise<void>;
  /** Whether the body was read since the body of the next version was last built ahead of time. */
  wasRead: boolean;
}

/**
 * The cache of response bodies. Its files are in one directory, which may be deleted at any time, because missing files
 * are rebuilt. The total size of the files is limited; the least recently read file is evicted first. `start` deletes
 * the files of an earlier process.
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
  /** In milliseconds of `performance.now()`. */
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #removing: Promise<unknown> = Promise.resolve();
  #sweeping: Promise<void> = Promise.resolve();
  #running = false;

  /** @param options.maxBytes total size limit of the files; 0 disables the cache */
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

  /** Aborts running builds, and resolves when all of their files are closed. */
  async stop(): Promise<void> {
    this.#running = false;
    clearInterval(this.#timer);
    const stopping = new Error('The service is stopping');
    await this.#abort(
      [...this.#files.values()].filter(({ isComplete }) => !isComplete),
      stopping,
    );
    await this.#sweeping;
    await this.#writer.close();
    this.#small.clear();
  }

  /** The number of complete files, and the total bytes of all files, including files that are being written. */
  get size(): { files: number; bytes: number } {
    const complete = [...this.#files.values()].filter(({ isComplete }) => isComplete);
    return { files: complete.length, bytes: this.#bytes };
  }

  /** The length of a body in bytes, if its file is complete. */
  bytesOf(of: Body): number | undefined {
    const file = this.#files.get(nameOf(of));
    return file?.isComplete === true ? file.bytes : undefined;
  }

  /** Reads a body that is too small for a file, and caches it in memory for up to a minute. */
  readSmall(of: Body): Promise<Buffer> {
    return this.#small.read(of);
  }

  /**
   * Opens a body, and builds its file if there is none. Readers follow the file as it grows; it is completed even if
   * all readers leave. Resolves when there is something to read. Resolves with undefined if the body cannot be cached
   * now.
   *
   * @throws VersionGoneError if the version is no longer complete
   */
  async open(of: Body): Promise<OpenBody | undefined> {
    const name = nameOf(of);
    for (;;) {
      const file = this.#files.get(name) ?? this.#begin(name, of);
      if (file === undefined) return undefined;
      file.wasRead = true;
      const { broken } = file;
      while (file.bytes === 0 && !file.isComplete && !broken.signal.aborted) await file.grown.promise;
      if (broken.signal.reason instanceof VersionGoneError) throw broken.signal.reason;
      if (broken.signal.aborted) return undefined;
      const handle = file.handle?.share() ?? (await openWhole(file));
      // While the file was being opened, it may have been evicted, erased or replaced.
      if (handle !== undefined && this.#files.get(name) === file) {
        this.#files.delete(name);
        this.#files.set(name, file);
        return reading(file, handle);
      }
      handle?.release();
      // If the body still has this file, something else has deleted or truncated it.
      if (this.#files.get(name) === file) this.#remove(name);
    }
  }

  /**
   * Builds the new version of every body that was read since its last build, so that the first read finds a complete
   * file. Call this method after publishing a version. Resolves with whether a build was started; never rejects.
   */
  async buildAhead(place: WorkflowRef): Promise<boolean> {
    const read = this.#of(place).filter(({ isComplete, wasRead }) => isComplete && wasRead);
    if (read.length === 0) return false;
    const version = await this.#store.records.version(place).catch(() => undefined);
    if (version === undefined) return false;
    let isBuilding = false;
    for (const before of read) {
      if (before.of.version.number >= version.number) continue;
      before.wasRead = false;
      const next = { ...before.of, version };
      const name = nameOf(next);
      const building = [...this.#files.values()].filter(({ isComplete }) => !isComplete);
      if (this.#files.has(name) || building.length >= MAX_BEFORE_AHEAD) continue;
      isBuilding = this.#begin(name, next) !== undefined || isBuilding;
    }
    return isBuilding;
  }

  /**
   * Removes every body of a workflow and aborts the readers of these bodies, because records of the workflow were
   * erased.
   */
  async forget(place: WorkflowRef): Promise<void> {
    this.#small.forget(place);
    await this.#abort(
      this.#of(place),
      new VersionGoneError('Records were erased while they were being read'),
    );
  }

  /**
   * Removes the bodies of versions that were pruned or from which records were erased. Also removes all small bodies,
   * which are quickly rebuilt.
   */
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

  async #abort(files: readonly BodyFile[], why: Error): Promise<void> {
    for (const file of files) this.#fail(file, why);
    await Promise.all(files.map(({ ended }) => ended));
    await this.#removing;
  }

  #begin(name: string, of: Body): BodyFile | undefined {
    if (!this.#running || performance.now() < this.#pausedUntil) return undefined;
    // Space is reserved for the size of the body as JSON, which other formats rarely exceed. A build that did not fit
    // beside the other builds would abort its readers.
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
      handle: undefined,
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
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      const handle = await open(file.path, 'wx+', 0o600);
      file.handle = new SharedHandle(handle);
      const onLength = (length: number) => this.#grow(file, length);
      const { signal } = file.broken;
      const ended = await this.#writer.write({ fd: handle.fd, body: file.of, onLength, signal });
      if (ended !== 'complete')
        throw new Error('The file of a response body could not be written: the disk may be full');
      // The signal must be checked before the wait, because removing an aborted file waits for this build, and waiting
      // for the removal would never end.
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
    file.handle?.release();
    file.handle = undefined;
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
    const full = new Error('The bodies being built exceed the size limit of the cache');
    this.#pause(file, full);
    this.#fail(file, full);
  }

  /** Pauses building after a failed write, so that not every request fills up a full disk again. */
  #pause({ path }: BodyFile, err: NodeJS.ErrnoException): void {
    const isOutOfHandles = err.code === 'EMFILE' || err.code === 'ENFILE';
    const pauseMs = isOutOfHandles ? HANDLES_PAUSE_MS : PAUSE_MS;
    this.#pausedUntil = performance.now() + pauseMs;
    this.#log.warn({ err, path, pauseMs }, 'body.not_written: reads use the database in the meantime');
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

/** An open file that is closed when all of its users have released it. The first user is the one that opened it. */
class SharedHandle {
  readonly #handle: FileHandle;
  #users = 1;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  share(): this {
    this.#users += 1;
    return this;
  }

  /** If a read is in progress, Node closes the file when the read has ended. */
  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#handle.close().catch(() => {});
  }

  /** Returns the number of bytes read; 0 at the end of the file. */
  async read(into: Uint8Array, length: number, position: number): Promise<number> {
    return (await this.#handle.read(into, 0, length, position)).bytesRead;
  }
}

/** Opens a complete file. Returns undefined if the file was deleted or truncated by something else. */
async function openWhole({ path, bytes }: BodyFile): Promise<SharedHandle | undefined> {
  const handle = await open(path).catch(() => undefined);
  if (handle === undefined) return undefined;
  if ((await handle.stat()).size >= bytes) return new SharedHandle(handle);
  await handle.close();
  return undefined;
}

function reading(file: BodyFile, handle: SharedHandle): OpenBody {
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
          const bytesRead = await handle.read(into, length, position);
          if (bytesRead === 0) throw new Error('The file is shorter than expected');
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
      handle.release();
    },
  };
}
