/** Caches whole response bodies in files, so that a version is read from the database and compressed only once. */
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../observe/log.ts';
import { Shares } from '../std/fair-share.ts';
import type { Store } from '../store/store.ts';
import { BodyBuild } from './body-build.ts';
import { type BodyReader, readFilePart } from './body-reader.ts';
import type { BodyWriter } from './body-writer.ts';
import {
  bodyOf,
  checkStillThere,
  nameOf,
  type Place,
  type Representation,
  samePlace,
  VersionGoneError,
} from './read.ts';
import { SmallBodyCache } from './small-body-cache.ts';

/** Bodies built or waiting for their turn to be, shared by teams; further requests read from the database. */
const MAX_BUILDING = 16;
/** No body is built ahead while this many builds run, because requests wait for those, and may need the next. */
const MAX_BEFORE_AHEAD = 2;
const SWEEP_MS = 60_000;
/** How long nothing is built after a body could not be written. */
const PAUSE_MS = 60_000;
/** Names remembered of bodies that are larger than the whole cache. */
const MAX_TOO_LARGE = 1_000;

/** An open file of a cached body, which stays readable if it is evicted. `part` or `close` must be called. */
export interface CachedBody {
  bytes: number;
  /** Reads the bytes from `start` up to, not including, `end`. Closing the reader closes the file. */
  part(start: number, end: number): BodyReader;
  close(): Promise<void>;
}

interface Kept {
  of: Representation;
  bytes: number;
  readers: Set<AbortController>;
  /** Readers that joined during the build may still be reading. */
  build: BodyBuild;
  /** Whether it was read since the body of the next version was last built ahead. */
  wasRead: boolean;
}

interface Building {
  of: Representation;
  build: BodyBuild;
  done: Promise<void>;
  wasRead: boolean;
}

/**
 * The files are in one directory, which may be deleted at any time: a missing file is built again. Their total size is
 * bounded, and the least recently read ones are evicted first. `start` removes what an earlier process left.
 */
export class RepresentationCache {
  readonly #store: Store;
  readonly #writer: Pick<BodyWriter, 'write' | 'close'>;
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #log: Logger;
  /** By file name, least recently read first. */
  readonly #kept = new Map<string, Kept>();
  readonly #building = new Map<string, Building>();
  readonly #buildingOf = new Shares();
  readonly #tooLarge = new Set<string>();
  readonly #small: SmallBodyCache;
  /** Bytes of the cached files and of those being built. */
  #bytes = 0;
  #buildCount = 0;
  /** By `performance.now()`: when bodies may be built again after one could not be written. */
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;
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
    for (const { build } of this.#building.values()) build.abort(new Error('The service is stopping'));
    await Promise.all([...this.#building.values()].map(({ done }) => done));
    await this.#sweeping;
    await this.#writer.close();
    this.#small.clear();
  }

  /** The number of cached files, and the bytes of all files, including those being built. */
  get size(): { files: number; bytes: number } {
    return { files: this.#kept.size, bytes: this.#bytes };
  }

  /** The length of a cached body; undefined when it is not cached. */
  bytesOf(of: Representation): number | undefined {
    return this.#kept.get(nameOf(of))?.bytes;
  }

  /** Reads a body that is too small for a file, and caches it in memory for a minute at most. */
  readSmall(of: Representation): Promise<Buffer> {
    return this.#small.read(of);
  }

  /** Opens a cached body; undefined when it is not cached. */
  async find(of: Representation): Promise<CachedBody | undefined> {
    const name = nameOf(of);
    const kept = this.#kept.get(name);
    if (kept === undefined) return undefined;
    const file = await openWhole(join(this.#directory, name), kept.bytes);
    // It may have been evicted, erased or replaced meanwhile.
    if (this.#kept.get(name) !== kept) {
      await file?.close();
      return undefined;
    }
    if (file === undefined) {
      this.#drop(name);
      return undefined;
    }
    this.#kept.delete(name);
    this.#kept.set(name, kept);
    kept.wasRead = true;
    return {
      bytes: kept.bytes,
      close: () => file.close(),
      part(start, end) {
        const reader = new AbortController();
        kept.readers.add(reader);
        const onClose = () => void kept.readers.delete(reader);
        return readFilePart({ file, start, end, broken: reader.signal, onClose });
      },
    };
  }

  /**
   * Reads a body while it is built into the cache; joins a build under way. The build completes even if every reader
   * leaves. Returns undefined when the body cannot be cached now.
   */
  build(of: Representation): BodyReader | undefined {
    const building = this.#building.get(nameOf(of)) ?? this.#begin(of);
    if (building === undefined) return undefined;
    building.wasRead = true;
    return building.build.joinable ? building.build.read() : undefined;
  }

  /**
   * Call it when a version was published: builds those of its bodies whose predecessors were read, so that the first
   * read finds them complete. A body that is not read has no successor built ahead. Resolves with whether a build was
   * started; never rejects.
   */
  async buildAhead(place: Place): Promise<boolean> {
    const read = [...this.#kept.values()].filter(({ of, wasRead }) => wasRead && samePlace(of.place, place));
    if (read.length === 0) return false;
    const version = await this.#store.records.version(place).catch(() => undefined);
    if (version === undefined) return false;
    let begun = false;
    for (const before of read) {
      const next = { ...before.of, version };
      if (before.of.version.number >= version.number) continue;
      before.wasRead = false;
      const name = nameOf(next);
      if (this.#kept.has(name) || this.#building.has(name) || this.#building.size >= MAX_BEFORE_AHEAD)
        continue;
      begun = this.#begin(next) !== undefined || begun;
    }
    return begun;
  }

  #begin(of: Representation): Building | undefined {
    const name = nameOf(of);
    if (!this.#running || this.#maxBytes === 0 || this.#tooLarge.has(name)) return undefined;
    if (performance.now() < this.#pausedUntil) return undefined;
    const { teamId } = of.place;
    if (!this.#buildingOf.admits(teamId, MAX_BUILDING)) return undefined;
    this.#buildingOf.add(teamId);
    this.#buildCount += 1;
    const path = join(this.#directory, `${name}.${this.#buildCount}.making`);
    let admitted = 0;
    const build = new BodyBuild({
      path,
      write: (fd, onLength, signal) => this.#writer.write({ fd, body: of, onLength, signal }),
      source: () => bodyOf(this.#store, of),
      admit: async (bytes) => {
        const fits = await this.#makeRoomFor(bytes);
        if (fits) admitted += bytes;
        else if (admitted + bytes > this.#maxBytes) this.#rememberTooLarge(name);
        return fits;
      },
      before: () => mkdir(this.#directory, { recursive: true, mode: 0o700 }),
    });
    const done: Promise<void> = build.finished
      .then((bytes) => {
        if (bytes !== undefined) return this.#keep({ building, name, path, bytes });
        if (build.wasRefused) this.#pause(path);
        return false;
      })
      .catch((err: unknown) => {
        this.#log.warn({ err }, 'representation.failed');
        return false;
      })
      .then(async (kept) => {
        if (!kept) this.#bytes -= admitted;
        if (!kept) await rm(path, { force: true }).catch(() => {});
        // Last, so that no file is left when those who wait for the build continue.
        this.#building.delete(name);
        this.#buildingOf.remove(teamId);
      });
    const building: Building = { of, build, done, wasRead: false };
    this.#building.set(name, building);
    return building;
  }

  /** Removes every body of a workflow and breaks off their readers, because records of it were erased. */
  async forget(place: Place): Promise<void> {
    this.#small.forget(place);
    const gone = new VersionGoneError('Records were erased while they were read');
    const building = [...this.#building.values()].filter(({ of }) => samePlace(of.place, place));
    for (const { build } of building) build.abort(gone);
    for (const [name, { of, readers, build }] of this.#kept) {
      if (!samePlace(of.place, place)) continue;
      build.abort(gone);
      for (const reader of readers) reader.abort(gone);
      await this.#remove(name);
    }
    await Promise.all(building.map(({ done }) => done));
    // A build that was complete already may have entered the cache meanwhile.
    for (const { of } of building) await this.#remove(nameOf(of));
  }

  /** Removes the bodies of versions that were pruned or erased from, and all small bodies, which are soon built again. */
  tick(): Promise<void> {
    this.#small.clear();
    this.#sweeping = this.#sweeping.then(() => this.#sweep()).catch(() => {});
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    for (const [name, { of }] of [...this.#kept]) {
      if (!this.#running) return;
      if (!(await this.#isReadable(of))) await this.#remove(name);
    }
  }

  async #isReadable(of: Representation): Promise<boolean> {
    try {
      await checkStillThere(this.#store, of.place, of.version);
      return true;
    } catch (error) {
      if (error instanceof VersionGoneError) return false;
      throw error;
    }
  }

  async #keep(made: { building: Building; name: string; path: string; bytes: number }): Promise<boolean> {
    const { building, name, path, bytes } = made;
    const { of, build } = building;
    const final = join(this.#directory, name);
    // Fails when the directory was deleted.
    const moved = await rename(path, final).then(
      () => true,
      () => false,
    );
    if (!moved) return false;
    // Checked after the renaming: an erasure from now on finds the file by its name.
    if (!(await this.#isReadable(of).catch(() => false))) {
      await rm(final, { force: true });
      return false;
    }
    this.#drop(name);
    this.#kept.set(name, { of, bytes, readers: new Set(), build, wasRead: building.wasRead });
    return true;
  }

  async #makeRoomFor(bytes: number): Promise<boolean> {
    if (bytes > this.#maxBytes) return false;
    // Reserved at once, so that two concurrent builds do not get the same room.
    this.#bytes += bytes;
    while (this.#bytes > this.#maxBytes) {
      const [oldest] = this.#kept.keys();
      if (oldest === undefined) {
        this.#bytes -= bytes;
        return false;
      }
      await this.#remove(oldest);
    }
    return true;
  }

  /** Pauses building, so that not every request fills a full disk again. */
  #pause(path: string): void {
    this.#pausedUntil = performance.now() + PAUSE_MS;
    this.#log.warn({ path }, 'representation.not_written: the disk may be full. Reads go on without files');
  }

  #rememberTooLarge(name: string): void {
    if (this.#tooLarge.size >= MAX_TOO_LARGE) this.#tooLarge.clear();
    this.#tooLarge.add(name);
  }

  #drop(name: string): void {
    const kept = this.#kept.get(name);
    if (kept === undefined) return;
    this.#kept.delete(name);
    this.#bytes -= kept.bytes;
  }

  async #remove(name: string): Promise<void> {
    this.#drop(name);
    await rm(join(this.#directory, name), { force: true }).catch(() => {});
  }
}

/** Opens a file if it still has its full length: something else may have truncated it. */
async function openWhole(path: string, bytes: number): Promise<FileHandle | undefined> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined || (await file.stat()).size === bytes) return file;
  await file.close();
  return undefined;
}
