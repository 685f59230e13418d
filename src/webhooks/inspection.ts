/** Receives requests for inspectors: limits them, checks their signatures, stores them, and answers as configured. */
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { type InspectedRequest, MAX_INSPECTED } from '../model/inspector.ts';
import type { Clock } from '../std/clock.ts';
import { Shares } from '../std/fair-share.ts';
import { addressWarning } from './address-warning.ts';
import type { WebhookDeps } from './deps.ts';
import { inspectSignature } from './inspect-signature.ts';

/** Concurrent requests of all inspectors, each with at most 64 KiB in memory: teams share them. */
const MAX_AT_ONCE = 256;
/** The rate limit of one inspector: a token bucket. */
const BURST = 100;
const PER_SECOND = 50;
/** Inspectors whose token bucket is remembered. */
const MAX_BUCKETS = 10_000;

/** A request whose body has not been read. */
interface Arrived {
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  /** Reads the body, at most 64 KiB of it. `size` is the size of the whole body in bytes. */
  read(): Promise<{ bytes: Buffer; size: number; truncated: boolean }>;
  /** Called when nothing is left to do but to wait for the delay. */
  onWait?(): void;
  /** Aborted when the sender disconnects. */
  gone: AbortSignal;
}

export class Inspection {
  readonly #deps: Pick<WebhookDeps, 'store' | 'sealer' | 'policy' | 'resolver'>;
  readonly #publicUrl: () => string;
  readonly #elapsed: Clock;
  /** Requests under way, by team. */
  readonly #underWay = new Shares();
  /** Token buckets by inspector, least recently used first. */
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();
  readonly #waiting = new Set<AbortController>();
  #closed = false;

  /** @param options.elapsed a monotonic clock, in milliseconds */
  constructor(
    options: Pick<WebhookDeps, 'store' | 'sealer' | 'policy' | 'resolver'> & {
      publicUrl(): string;
      elapsed?: Clock;
    },
  ) {
    this.#deps = options;
    this.#publicUrl = options.publicUrl;
    this.#elapsed = options.elapsed ?? (() => performance.now());
  }

  /** The URL at which an inspector receives requests. */
  urlOf(id: string): string {
    return `${this.#publicUrl()}/inspect/${id}`;
  }

  /** A sentence that says why deliveries to inspectors will be refused; null when they will not. */
  async refusal(): Promise<string | null> {
    const remark = await addressWarning(this.#deps, this.#publicUrl());
    if (remark === '') return null;
    return `${remark} The address of inspectors is FLOWHOOK_PUBLIC_URL, or else where the service listens`;
  }

  /**
   * Stores a request, and resolves with the response status after the delay configured for the inspector.
   *
   * @throws Problem `inspector_not_found`, `overloaded`
   */
  async receive(id: string, arrived: Arrived): Promise<number> {
    const { store } = this.#deps;
    const inspector = await store.inspectors.find({ id });
    if (inspector === undefined) throw new Problem('inspector_not_found');
    const { teamId } = inspector;
    this.#admit(id, teamId);
    try {
      const { request, workflowId } = await this.#judge(teamId, id, arrived);
      const kept = await store.inspectors.storeRequest({
        teamId,
        id,
        workflowId,
        request,
        most: MAX_INSPECTED,
      });
      if (kept === undefined) throw new Problem('inspector_not_found');
      if (inspector.delayMs > 0) arrived.onWait?.();
      await this.#wait(inspector.delayMs, arrived.gone);
      return inspector.status;
    } finally {
      this.#underWay.remove(teamId);
    }
  }

  /** Ends all delays. */
  close(): void {
    this.#closed = true;
    for (const one of this.#waiting) one.abort();
  }

  async #judge(
    teamId: string,
    id: string,
    { method, path, headers, read }: Arrived,
  ): Promise<{ request: InspectedRequest; workflowId: string | null }> {
    const { bytes, size, truncated } = await read();
    const message = { teamId, url: this.urlOf(id), headers, body: bytes, truncated };
    const signature = await inspectSignature(this.#deps, message);
    const body = bytes.toString('utf8');
    return {
      request: { method, path, headers, body, bodyBytes: size, truncated, signature },
      workflowId: workflowOf(body),
    };
  }

  #admit(id: string, teamId: string): void {
    const nowMs = this.#elapsed();
    const before = this.#buckets.get(id) ?? { tokens: BURST, atMs: nowMs };
    const tokens = Math.min(BURST, before.tokens + ((nowMs - before.atMs) / 1_000) * PER_SECOND);
    if (tokens < 1 || !this.#underWay.admits(teamId, MAX_AT_ONCE)) {
      throw new Problem('overloaded', {
        sentence: `An inspector takes ${PER_SECOND} requests a second, and all together ${MAX_AT_ONCE} at once, which teams share. Try again shortly`,
        headers: { 'retry-after': '1' },
      });
    }
    this.#underWay.add(teamId);
    this.#buckets.delete(id);
    this.#buckets.set(id, { tokens: tokens - 1, atMs: nowMs });
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MAX_BUCKETS && oldest !== undefined) this.#buckets.delete(oldest);
  }

  async #wait(delayMs: number, gone: AbortSignal): Promise<void> {
    if (delayMs === 0 || this.#closed || gone.aborted) return;
    const cut = new AbortController();
    const leave = () => cut.abort();
    gone.addEventListener('abort', leave, { once: true });
    this.#waiting.add(cut);
    await pause(delayMs, undefined, { signal: cut.signal }).catch(() => undefined);
    this.#waiting.delete(cut);
    gone.removeEventListener('abort', leave);
  }
}

/** The workflow of the event in a body, so that erasing from that workflow finds it. */
function workflowOf(body: string): string | null {
  try {
    const { workflowId } = JSON.parse(body) as { workflowId?: unknown };
    return typeof workflowId === 'string' && !workflowId.includes('\0') && workflowId.isWellFormed()
      ? workflowId
      : null;
  } catch {
    return null;
  }
}
