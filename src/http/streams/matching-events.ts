/** Reads the events that match a filter: for one request, with a bound on its time, or for a stream. */
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { toIso } from '../../std/clock.ts';
import type { StoredEvent } from '../../store/operations/events.ts';
import type { Store } from '../../store/store.ts';
import type { Examiner } from '../../webhooks/rules/examiner.ts';
import type { EventStream } from './event-stream.ts';

/** Maximum time that one request spends on examining events. What was found by then is returned. */
const BUDGET_MS = 2_000;
/** Events that are read at a time: their bodies have at most 5 MB. */
const EVENTS_AT_ONCE = 250;
/** Maximum number of events that one request examines. */
const MOST_EXAMINED = 1_000;

interface Search {
  store: Pick<Store, 'events'>;
  examiner: Examiner;
  teamId: string;
  filter: string;
  /** Maximum number of events that are returned. */
  limit: number;
  signal: AbortSignal;
}

/** The bodies of events that match, with only the differences that match. */
interface Matches {
  bodies: string[];
  /** The last event that was examined; undefined if there was none. */
  last: StoredEvent | undefined;
  /** Whether all events were examined. */
  isEnd: boolean;
}

/** Examines the events of a page, newest first. `next` is the ID after which the next page begins; null if there is none. */
export async function matchesOnPage(
  search: Search,
  page: { events: readonly StoredEvent[]; next: string | null },
): Promise<{ bodies: string[]; next: string | null }> {
  const { bodies, last, isEnd } = await matchesAmong(search, page.events);
  return { bodies, next: isEnd ? page.next : (last?.id ?? null) };
}

/** Examines events in the given order, until enough were found or the time is over. At least one is examined. */
async function matchesAmong(
  { examiner, teamId, filter, limit, signal }: Search,
  events: readonly StoredEvent[],
  endMs: number = performance.now() + BUDGET_MS,
): Promise<Matches> {
  const bodies: string[] = [];
  let last: StoredEvent | undefined;
  for (const event of events) {
    if (last !== undefined && (bodies.length === limit || performance.now() >= endMs)) {
      return { bodies, last, isEnd: false };
    }
    const { matches, body } = await examiner.examineEvent({ teamId, event, filter, signal });
    if (matches && body !== null) bodies.push(body);
    last = event;
  }
  return { bodies, last, isEnd: true };
}

/**
 * Examines the events after a sequence, oldest first.
 *
 * @returns `next`: the sequence of the last event that was examined; `isEnd`: whether there are no further events
 */
export async function matchesAfter(
  search: Search,
  after: number,
): Promise<{ bodies: string[]; next: number; isEnd: boolean }> {
  const { store, teamId, limit } = search;
  const endMs = performance.now() + BUDGET_MS;
  const found: string[] = [];
  let next = after;
  for (let examined = 0; examined < MOST_EXAMINED; examined += EVENTS_AT_ONCE) {
    const events = await store.events.list({ teamId, afterSequence: next, limit: EVENTS_AT_ONCE });
    const page = await matchesAmong({ ...search, limit: limit - found.length }, events, endMs);
    found.push(...page.bodies);
    next = page.last?.sequence ?? next;
    if (!page.isEnd || found.length === limit) break;
    if (events.length < EVENTS_AT_ONCE) return { bodies: found, next, isEnd: true };
  }
  return { bodies: found, next, isEnd: false };
}

/** Events that a stream reads at a time. */
const EVENTS_OF_STREAM = 50;

/** Reports the events that match a filter to one stream, in order and at the pace of that stream. */
export class MatchStream {
  readonly teamId: string;
  readonly #of: Pick<Search, 'store' | 'examiner' | 'teamId' | 'filter'> & {
    stream: EventStream;
    log: Logger;
  };
  readonly #closed = new AbortController();
  #next: number;
  #isBusy = false;

  /** @param after the sequence after which events are reported */
  constructor(
    of: Pick<Search, 'store' | 'examiner' | 'teamId' | 'filter'> & { stream: EventStream; log: Logger },
    after: number,
  ) {
    this.#of = of;
    this.teamId = of.teamId;
    this.#next = after;
    void of.stream.closed.then(() => this.#closed.abort());
  }

  /** @param newest the sequence of the team's newest event */
  look(newest: number): void {
    if (this.#isBusy || newest <= this.#next) return;
    this.#isBusy = true;
    void this.#report().finally(() => {
      this.#isBusy = false;
    });
  }

  async #report(): Promise<void> {
    const { store, teamId, stream, log } = this.#of;
    try {
      for (;;) {
        const page = { teamId, afterSequence: this.#next, limit: EVENTS_OF_STREAM };
        const events = await store.events.list(page);
        for (const event of events) if (!(await this.#examine(event))) return;
        if (events.length < EVENTS_OF_STREAM) break;
      }
      // A client that resumes does not wait until events that do not match are examined again.
      stream.mark(this.#next);
    } catch (err) {
      if (err instanceof Problem && err.code === 'field_invalid') return stream.end(err.message);
      // The next look continues with the same event.
      if (stream.isOpen) log.warn({ err, teamId }, 'stream.not_sent');
    }
  }

  /** Returns whether the stream is still open. */
  async #examine(event: StoredEvent): Promise<boolean> {
    const { examiner, teamId, filter, stream } = this.#of;
    const { signal } = this.#closed;
    const { matches } = await examiner.examineEvent({ teamId, event, filter, signal });
    const { id, sequence, type, workflowId, jobId, createdAt } = event;
    this.#next = sequence;
    if (matches) {
      const data = { id, sequence, type, workflowId, jobId, timestamp: toIso(createdAt) };
      stream.send({ event: 'event', id: sequence, data });
    }
    await stream.drained();
    return stream.isOpen;
  }
}
