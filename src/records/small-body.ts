/** Caches small response bodies in memory. */
import type { WorkflowRef } from '../model/workflow.ts';
import { type Body, bodyOf, nameOf, sameWorkflow, type VersionReader } from './read.ts';

/** Limit for all small bodies together. */
const MAX_SMALL_BYTES = 16 * 1_048_576;
/** Memory overhead that is counted for each entry. In a measurement, 100,000 bodies of 12 bytes took 61 MB. */
const ENTRY_BYTES = 1_024;

/**
 * An LRU cache of small response bodies. It is worthwhile because joining 1,000 records in the database takes longer
 * than the rest of the request. The caller decides which bodies are small.
 */
export class SmallBodyCache {
  readonly #store: VersionReader;
  readonly #maxBytes: number;
  /** By name, least recently read first. */
  readonly #kept = new Map<string, { place: WorkflowRef; bytes: Buffer }>();
  #bytes = 0;
  #forgotten = 0;

  /** @param maxBytes maximum size of the cache; more than 16 MiB counts as 16 MiB, and 0 disables it */
  constructor(store: VersionReader, maxBytes: number) {
    this.#store = store;
    this.#maxBytes = Math.min(maxBytes, MAX_SMALL_BYTES);
  }

  /** @throws VersionGoneError like `readWhole` */
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
    // The bytes are not cached if they may contain records that were erased during the read, or if another reader has
    // already cached them.
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

/** Copies the bytes into separate memory, because a slice of Node's buffer pool would keep 64 KiB alive. */
function joined(parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
