/** Whole bodies kept as files, so that a version is read from the database and compressed only once. */
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../observe/log.ts';
import type { Store } from '../store/store.ts';
import { bodyOf, nameOf, type Representation } from './body.ts';
import { BodyBuild } from './body-build.ts';
import { type BodyReader, readFilePart } from './body-reader.ts';
import type { BodyWriter } from './body-writer.ts';
import { checkStillThere, type Place, samePlace, VersionGoneError } from './read.ts';
import { SmallBodyCache } from './small-body-cache.ts';

/** Bodies that are made at a time; who comes beyond them reads from the database. */
const MAX_MAKING = 4;
/** No body is made ahead beside so many: somebody may wait for those, and for the next. */
const MAX_BEFORE_AHEAD = 2;
const SWEEP_MS = 60_000;
/** No body is made for so long after one could not be written. */
const REST_MS = 60_000;
/** Names of bodies that are known to be larger than the bound. */
const MAX_TOO_LARGE = 1_000;

/** A kept body, opened. It stays whole whatever becomes of its file; `part` or `close` must be called. */
export interface CachedBody {
  bytes: number;
  /** The bytes from `start` up to, not including, `end`. Closing it closes the body. */
  part(start: number, end: number): BodyReader;
  close(): Promise<void>;
}

interface Kept {
  of: Representation;
  bytes: number;
  readers: Set<AbortController>;
  /** Some of those who read while it was made may not be at its end yet. */
  build: BodyBuild;
  /** Whether somebody has asked for it, and no successor was made for that. */
  wasRead: boolean;
}

interface Making {
  of: Representation;
  build: BodyBuild;
  done: Promise<void>;
  wasRead: boolean;
}

/**
 * The files lie in one directory, which may be deleted at any time: a missing file is one that has to be made
 * again. Their total is bounded; those not read for longest go first. What an earlier process left is removed.
 */
export class RepresentationCache {
  readonly #store: Store;
  readonly #writer: Pick<BodyWriter, 'write' | 'close'>;
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #log: Logger;
  /** By file name, those not read for longest first. */
  readonly #kept = new Map<string, Kept>();
  readonly #making = new Map<string, Making>();
  readonly #tooLarge = new Set<string>();
  readonly #small: SmallBodyCache;
  /** Of the kept and of those being made. */
  #bytes = 0;
  #made = 0;
  /** When a body may be made again after one could not be written. */
  #restUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #running = false;

  /** @param options.maxBytes 0 keeps nothing */
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

  /** Breaks off what is being made; resolves when nothing is open any more. */
  async stop(): Promise<void> {
    this.#running = false;
    clearInterval(this.#timer);
    for (const { build } of this.#making.values()) build.abort(new Error('The service is stopping'));
    await Promise.all([...this.#making.values()].map(({ done }) => done));
    await this.#sweeping;
    await this.#writer.close();
    this.#small.clear();
  }

  /** What is kept; its bytes are those on disk, with what is being made. */
  get size(): { files: number; bytes: number } {
    return { files: this.#kept.size, bytes: this.#bytes };
  }

  /** The length of a kept body, or nothing. */
  bytesOf(of: Representation): number | undefined {
    return this.#kept.get(nameOf(of))?.bytes;
  }

  /** A body that is too small for a file, whole: kept in memory for a minute at most. */
  readSmall(of: Representation): Promise<Buffer> {
    return this.#small.read(of);
  }

  /** Opens a kept body, or answers nothing. */
  async find(of: Representation): Promise<CachedBody | undefined> {
    const name = nameOf(of);
    const kept = this.#kept.get(name);
    if (kept === undefined) return undefined;
    const file = await openWhole(join(this.#directory, name), kept.bytes);
    // It may have been evicted or erased meanwhile, or made anew.
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
   * Reads a body that is kept once it is complete; answers nothing when it cannot be kept. It is made only
   * if nobody is making it already, and to its end even if every reader goes.
   */
  build(of: Representation): BodyReader | undefined {
    const making = this.#making.get(nameOf(of)) ?? this.#begin(of);
    if (making === undefined) return undefined;
    making.wasRead = true;
    return making.build.joinable ? making.build.read() : undefined;
  }

  /**
   * To be called when a version was published: makes those of its bodies ahead whose predecessors were read, so that
   * the first one to read it finds it whole. One is made for a read at most, however often versions come. Answers
   * whether there was anything to make. Never rejects: it may as well be left.
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
      if (this.#kept.has(name) || this.#making.has(name) || this.#making.size >= MAX_BEFORE_AHEAD) continue;
      begun = this.#begin(next) !== undefined || begun;
    }
    return begun;
  }

  #begin(of: Representation): Making | undefined {
    const name = nameOf(of);
    if (!this.#running || this.#maxBytes === 0 || this.#tooLarge.has(name)) return undefined;
    if (performance.now() < this.#restUntil) return undefined;
    if (this.#making.size >= MAX_MAKING) return undefined;
    this.#made += 1;
    const path = join(this.#directory, `${name}.${this.#made}.making`);
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
        if (bytes !== undefined) return this.#keep({ making, name, path, bytes });
        if (build.wasRefused) this.#rest(path);
        return false;
      })
      .catch((err: unknown) => {
        this.#log.warn({ err }, 'representation.failed');
        return false;
      })
      .then(async (kept) => {
        if (!kept) this.#bytes -= admitted;
        if (!kept) await rm(path, { force: true }).catch(() => {});
        // Last, so that whoever waits for it finds no file.
        this.#making.delete(name);
      });
    const making: Making = { of, build, done, wasRead: false };
    this.#making.set(name, making);
    return making;
  }

  /** Removes every body of a workflow and breaks off who is reading one: records were erased from it. */
  async forget(place: Place): Promise<void> {
    this.#small.forget(place);
    const gone = new VersionGoneError('Records were erased while they were read');
    const making = [...this.#making.values()].filter(({ of }) => samePlace(of.place, place));
    for (const { build } of making) build.abort(gone);
    for (const [name, { of, readers, build }] of this.#kept) {
      if (!samePlace(of.place, place)) continue;
      build.abort(gone);
      for (const reader of readers) reader.abort(gone);
      await this.#remove(name);
    }
    await Promise.all(making.map(({ done }) => done));
    // One that was whole already may have come to be kept meanwhile.
    for (const { of } of making) await this.#remove(nameOf(of));
  }

  /** Removes the bodies of versions that were pruned or erased from, and all small ones: they are soon made again. */
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

  async #keep(made: { making: Making; name: string; path: string; bytes: number }): Promise<boolean> {
    const { making, name, path, bytes } = made;
    const { of, build } = making;
    const final = join(this.#directory, name);
    // Somebody deleted the directory: nothing is kept.
    const moved = await rename(path, final).then(
      () => true,
      () => false,
    );
    if (!moved) return false;
    // Looked at after the renaming: an erasure from now on finds the file under its name.
    if (!(await this.#isReadable(of).catch(() => false))) {
      await rm(final, { force: true });
      return false;
    }
    this.#drop(name);
    this.#kept.set(name, { of, bytes, readers: new Set(), build, wasRead: making.wasRead });
    return true;
  }

  async #makeRoomFor(bytes: number): Promise<boolean> {
    if (bytes > this.#maxBytes) return false;
    // Taken at once, so that two who ask at a time do not both get the same room.
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

  /** A full disk must not be filled again by every reader. */
  #rest(path: string): void {
    this.#restUntil = performance.now() + REST_MS;
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

/** Opens a file if it is as long as it was when it was made: somebody else may have cut it. */
async function openWhole(path: string, bytes: number): Promise<FileHandle | undefined> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined || (await file.stat()).size === bytes) return file;
  await file.close();
  return undefined;
}
