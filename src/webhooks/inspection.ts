/** What inspectors are sent: taken within bounds that no sender can pass, judged, kept, and answered as told. */
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { type InspectedRequest, MAX_INSPECTED } from '../model/inspector.ts';
import type { Clock } from '../std/clock.ts';
import { addressWarning } from './address-warning.ts';
import type { WebhookDeps } from './deps.ts';
import { inspectSignature } from './inspect-signature.ts';

/** Requests that are read or kept waiting at once, each with at most 64 KiB in memory. */
const MAX_AT_ONCE = 256;
const MAX_AT_ONCE_OF_TEAM = 64;
const MAX_AT_ONCE_OF_ONE = 32;
/** Requests that one takes, in a row and by the second. */
const BURST = 100;
const PER_SECOND = 50;
/** Inspectors whose pace is remembered. */
const MAX_REMEMBERED = 10_000;

/** What came, before anybody has looked at it. */
export interface Arrived {
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  /** Reads the body, of which at most 64 KiB are wanted. */
  read(): Promise<{ bytes: Buffer; size: number; truncated: boolean }>;
  /** The sender does not wait any more. */
  gone: AbortSignal;
}

export class Inspection {
  readonly #deps: Pick<WebhookDeps, 'store' | 'sealer' | 'policy' | 'resolver'>;
  readonly #publicUrl: () => string;
  readonly #elapsed: Clock;
  /** Under way, by inspector and by team. */
  readonly #underWay = new Map<string, number>();
  #allUnderWay = 0;
  readonly #paces = new Map<string, { left: number; atMs: number }>();
  readonly #waiting = new Set<AbortController>();
  #closed = false;

  /** @param options.elapsed milliseconds by a clock that is never set back */
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

  /** Where an inspector receives. */
  urlOf(id: string): string {
    return `${this.#publicUrl()}/inspect/${id}`;
  }

  /** Why deliveries to inspectors will be refused, as a sentence; null when they will not. */
  async refusal(): Promise<string | null> {
    const remark = await addressWarning(this.#deps, this.#publicUrl());
    if (remark === '') return null;
    return `${remark} The address of inspectors is FLOWHOOK_PUBLIC_URL, or else where the service listens`;
  }

  /**
   * Takes a request, and answers the status that the sender is to be told, when it is to be told it.
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
      const kept = await store.inspectors.keep({ teamId, id, workflowId, request, most: MAX_INSPECTED });
      if (kept === undefined) throw new Problem('inspector_not_found');
      await this.#wait(inspector.delayMs, arrived.gone);
      return inspector.status;
    } finally {
      this.#dismiss(id, teamId);
    }
  }

  /** Lets nobody wait any longer. */
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
    const mine = this.#underWay.get(id) ?? 0;
    const ofTeam = this.#underWay.get(teamId) ?? 0;
    const nowMs = this.#elapsed();
    const before = this.#paces.get(id) ?? { left: BURST, atMs: nowMs };
    const left = Math.min(BURST, before.left + ((nowMs - before.atMs) / 1_000) * PER_SECOND);
    const isFull =
      this.#allUnderWay >= MAX_AT_ONCE || ofTeam >= MAX_AT_ONCE_OF_TEAM || mine >= MAX_AT_ONCE_OF_ONE;
    if (isFull || left < 1) {
      throw new Problem('overloaded', {
        sentence:
          `An inspector takes ${PER_SECOND} requests a second and ${MAX_AT_ONCE_OF_ONE} at once, those of a team ` +
          `${MAX_AT_ONCE_OF_TEAM} and all together ${MAX_AT_ONCE} at once. Try again shortly`,
        headers: { 'retry-after': '1' },
      });
    }
    this.#underWay.set(id, mine + 1);
    this.#underWay.set(teamId, ofTeam + 1);
    this.#allUnderWay += 1;
    // The one that was used last stands last.
    this.#paces.delete(id);
    this.#paces.set(id, { left: left - 1, atMs: nowMs });
    const [oldest] = this.#paces.keys();
    if (this.#paces.size > MAX_REMEMBERED && oldest !== undefined) this.#paces.delete(oldest);
  }

  #dismiss(...names: [id: string, teamId: string]): void {
    for (const name of names) {
      const left = (this.#underWay.get(name) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(name);
      else this.#underWay.set(name, left);
    }
    this.#allUnderWay -= 1;
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

/** Which workflow an event is of, so that erasing from that workflow finds it. */
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
