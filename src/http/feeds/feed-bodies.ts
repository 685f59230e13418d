/** Keeps the bodies of feeds that were sent last, for a few minutes, and limits the requests to an address. */
import { Problem } from '../../model/error.ts';
import type { Rate } from '../../model/load-limit.ts';
import { compress, type Encoding } from '../../records/formats.ts';
import { RateLimitWindow } from '../limits/rate-limits.ts';

/** Maximum number of requests to one address, on this node. */
export const FEED_RATE: Rate = { count: 120, windowMs: 60_000 };

interface Kept {
  /** Names the content of the body. */
  name: string;
  teamId: string;
  workflowId: string;
  text: Promise<Buffer>;
  encoded: Map<Encoding, Promise<Uint8Array>>;
  bytes: number;
  usedAtMs: number;
}

/** Maximum number of bytes of kept bodies, and how long a body is kept after its last use. */
const MAX_KEPT_BYTES = 16 * 1_048_576;
const KEPT_MS = 5 * 60_000;

/** The bodies that were sent last. Readers who ask for the same body at the same time wait for one. */
export class FeedBodies {
  /** By address and format, least recently used first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  #sweep: NodeJS.Timeout | undefined;
  readonly #window = new RateLimitWindow(FEED_RATE);

  /**
   * Counts a request to an address.
   *
   * @throws Problem `rate_limited`
   */
  count(hash: string): void {
    const { isWithin, untilMs } = this.#window.take(hash, performance.now());
    if (isWithin) return;
    throw new Problem('rate_limited', {
      sentence: 'Too many requests for this feed. Retry after the number of seconds in `retry-after`',
      headers: { 'retry-after': String(Math.max(1, Math.ceil(untilMs / 1_000))) },
    });
  }

  /**
   * @param of.key the address and the format
   * @param of.name differs for different contents
   */
  async read(
    of: { key: string; name: string; teamId: string; workflowId: string; encoding: Encoding },
    build: () => Promise<string>,
  ): Promise<Uint8Array> {
    const known = this.#kept.get(of.key);
    const kept = known?.name === of.name ? known : this.#begin(of, build);
    kept.usedAtMs = performance.now();
    this.#kept.delete(of.key);
    if (known !== undefined && known !== kept) this.#bytes -= known.bytes;
    this.#kept.set(of.key, kept);
    this.#startSweep();
    const text = await kept.text;
    if (of.encoding === 'identity') return text;
    let encoded = kept.encoded.get(of.encoding);
    if (encoded === undefined) {
      encoded = compress(text, of.encoding, { isKept: true });
      kept.encoded.set(of.encoding, encoded);
      encoded.then((bytes) => this.#grow(of.key, kept, bytes.length)).catch(() => {});
    }
    return encoded;
  }

  #begin(
    of: { key: string; name: string; teamId: string; workflowId: string },
    build: () => Promise<string>,
  ): Kept {
    const { key, name, teamId, workflowId } = of;
    const text = build().then((made) => Buffer.from(made));
    const kept: Kept = { name, teamId, workflowId, text, encoded: new Map(), bytes: 0, usedAtMs: 0 };
    text.then(
      (bytes) => this.#grow(key, kept, bytes.length),
      // A refusal is not kept: the next reader tries again.
      () => this.#drop(key, kept),
    );
    return kept;
  }

  #grow(key: string, kept: Kept, bytes: number): void {
    if (this.#kept.get(key) !== kept) return;
    kept.bytes += bytes;
    this.#bytes += bytes;
    for (const [oldest, one] of this.#kept) if (this.#bytes > MAX_KEPT_BYTES) this.#drop(oldest, one);
  }

  #drop(key: string, kept: Kept): void {
    if (this.#kept.get(key) !== kept) return;
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
  }

  /** Drops the bodies of a workflow whose records were erased. */
  forget({ teamId, workflowId }: { teamId: string; workflowId: string }): void {
    for (const [key, kept] of this.#kept) {
      if (kept.teamId === teamId && kept.workflowId === workflowId) this.#drop(key, kept);
    }
  }

  /** Drops bodies that nobody reads, while there are any. */
  #startSweep(): void {
    this.#sweep ??= setInterval(() => {
      const until = performance.now() - KEPT_MS;
      for (const [key, kept] of this.#kept) if (kept.usedAtMs <= until) this.#drop(key, kept);
      if (this.#kept.size === 0) this.close();
    }, KEPT_MS / 5).unref();
  }

  close(): void {
    clearInterval(this.#sweep);
    this.#sweep = undefined;
    this.#kept.clear();
    this.#bytes = 0;
  }
}
