/** Gathers what matches for the digest of a webhook: the rows that a step of a decision changes. */

import { type Digest, digestEnd, gather } from '../../model/digest.ts';
import { isSameDigest } from '../../model/rule.ts';
import { toIso } from '../../std/clock.ts';
import { recordKey } from '../../store/operations/record-indexes.ts';
import {
  type DigestRow,
  eventKey,
  HEAD_KEY,
  type JudgedEvent,
  type OpenDigest,
  type QuietRow,
} from '../../store/operations/rules/decisions.ts';
import type { ComparedRecord } from './compared-records.ts';

/** The bounds of a digest. Matches beyond them are only counted. */
export const MAX_ROWS = 1_000;
export const MAX_BYTES = 2_097_152;
const MAX_SUMMARY = 300;

/** What the row of a workflow knows, as JSON in its texts. */
export interface Head {
  /** The time of the first match, and the version before it. */
  from: number;
  previousVersion: number | null;
}

/** The same of the newest event; `before` is how many matches without a row there were before it. */
export interface HeadNow {
  version: number | null;
  before: number;
}

/** A matching event that is not about records, as its row keeps it. */
export interface GatheredEvent {
  id: string;
  type: string;
  timestamp: string;
  workflowId: string | null;
  jobId: string | null;
  summary: string | null;
}

/** The event of a decision whose matches are gathered. */
type Gathering = Pick<JudgedEvent, 'sequence' | 'createdAt' | 'workflowId'> & { revision: number };

/** The versions that the event reports; null if it is not about records. */
interface Versions {
  version: number | null;
  previousVersion: number | null;
}

/**
 * The digest of a webhook while an event is examined. A step that is repeated, also one that starts again after an erasure,
 * changes nothing twice: a row that covers the event already is left as it is, and the matches without a row are counted
 * from `HeadNow.before`.
 */
export class DigestInMaking {
  readonly #open: OpenDigest;
  readonly #event: Gathering;
  readonly #facts: Versions;
  readonly #progress: { counted: number };
  readonly #mayRestart: boolean;
  readonly #set = new Map<string, DigestRow>();
  readonly #removed = new Map<string, { workflowId: string; id: string }>();
  /** When the digest ends. */
  readonly until: number;
  #rows: number;
  #bytes: number;
  /** Matches of earlier events that have lost their row. */
  #moved = 0;
  #hasChanged = false;

  /**
   * @param given.progress counts the matches of the event that have no row, from step to step
   * @param given.mayRestart whether what is gathered for the event may have been gathered before (default: true), in a
   * decision that has started again
   */
  constructor(
    digest: Digest,
    open: OpenDigest,
    given: { event: Gathering; facts: Versions; progress: { counted: number }; mayRestart?: boolean },
  ) {
    this.#open = open;
    this.#event = given.event;
    this.#facts = given.facts;
    this.#progress = given.progress;
    this.#mayRestart = given.mayRestart ?? true;
    this.#rows = open.rows;
    this.#bytes = open.bytes;
    const { createdAt } = given.event;
    // A digest that was changed or removed is over. If the clock was set back, the digest ends as if it began now.
    const end = isSameDigest(digest, open.inForce) ? digestEnd(digest, createdAt) : createdAt;
    this.until = Math.min(open.until ?? end, end);
  }

  /** The number of changed rows. */
  get size(): number {
    return this.#set.size + this.#removed.size;
  }

  /** Adds a difference, if it or an earlier one of the record matches. */
  difference({ id, before, after }: ComparedRecord, known: QuietRow | undefined, isMatch: boolean): void {
    const { sequence } = this.#event;
    if (known?.sequence === sequence) return;
    const earlier =
      known === undefined || known.matches === null ? undefined : { ...known, matches: known.matches };
    const gathered = gather(earlier, { id, before, after }, isMatch);
    if (gathered === undefined) return;
    this.#hasChanged = true;
    const key = recordKey(id);
    const grows = bytesOf(gathered) - (earlier === undefined ? 0 : bytesOf(earlier));
    const row = this.#row({ ...gathered, key, id });
    if (this.#fits(earlier === undefined ? 1 : 0, grows))
      this.#keep(row, earlier === undefined ? 1 : 0, grows);
    else {
      if (isMatch) this.#progress.counted += 1;
      if (earlier !== undefined) this.#drop(row, earlier);
    }
  }

  /** Adds an event that is not about records. */
  event(event: JudgedEvent, data: unknown): void {
    this.#hasChanged = true;
    const { eventId: id, type, createdAt, workflowId, jobId } = event;
    const summary = summaryOf(data);
    const kept: GatheredEvent = { id, type, timestamp: toIso(createdAt), workflowId, jobId, summary };
    const key = eventKey(event.sequence);
    const row = this.#row({ key, id: '', sent: null, newest: JSON.stringify(kept), matches: 1 });
    if (this.#fits(1, bytesOf(row))) this.#keep(row, 1, bytesOf(row));
    else this.#progress.counted += 1;
  }

  /** What the step writes. */
  changes(): { set: DigestRow[]; remove: { workflowId: string; id: string }[]; digestUntil?: number } {
    const { until } = this;
    const isEarlier = this.#open.until !== null && until < this.#open.until;
    return {
      set: this.#hasChanged ? [...this.#set.values(), this.#head()] : [],
      remove: [...this.#removed.values()],
      ...(isEarlier ? { digestUntil: until } : {}),
    };
  }

  #head(): DigestRow {
    const { head } = this.#open;
    const { createdAt, sequence } = this.#event;
    const { version, previousVersion } = this.#facts;
    const first = JSON.parse(head?.sent ?? 'null') as Head | null;
    const last = JSON.parse(head?.newest ?? 'null') as HeadNow | null;
    const isOwn = this.#mayRestart && head?.sequence === sequence;
    const counted = isOwn ? (last?.before ?? 0) : (head?.matches ?? 0);
    const before = counted + this.#moved;
    const sent: Head = {
      from: Math.min(first?.from ?? createdAt, createdAt),
      previousVersion: first?.previousVersion ?? previousVersion,
    };
    const newest: HeadNow = { version: version ?? last?.version ?? null, before };
    return this.#row({
      key: HEAD_KEY,
      id: '',
      sent: JSON.stringify(sent),
      newest: JSON.stringify(newest),
      matches: before + this.#progress.counted,
    });
  }

  #row(of: Pick<DigestRow, 'key' | 'id' | 'sent' | 'newest' | 'matches'>): DigestRow {
    const { workflowId, sequence, revision } = this.#event;
    return { ...of, workflowId: workflowId ?? '', until: this.until, sequence, revision };
  }

  /** The first row fits, however large it is. */
  #fits(rows: number, bytes: number): boolean {
    const isFirst = this.#rows === 0;
    return isFirst || (this.#rows + rows <= MAX_ROWS && this.#bytes + bytes <= MAX_BYTES);
  }

  #keep(row: DigestRow, rows: number, bytes: number): void {
    this.#set.set(row.key, row);
    this.#rows += rows;
    this.#bytes += bytes;
  }

  /** Removes a row that has become too large. Its matches are still counted. */
  #drop(
    { key, workflowId, id }: DigestRow,
    earlier: { sent: string | null; newest: string | null; matches: number },
  ): void {
    this.#removed.set(key, { workflowId, id });
    this.#moved += earlier.matches;
    this.#rows -= 1;
    this.#bytes -= bytesOf(earlier);
  }
}

function bytesOf({ sent, newest }: { sent: string | null; newest: string | null }): number {
  return Buffer.byteLength(sent ?? '') + Buffer.byteLength(newest ?? '');
}

/** Why a run failed or a webhook was paused. */
function summaryOf(data: unknown): string | null {
  const { error, reason, lastError } = (data ?? {}) as Record<string, unknown>;
  const text = [error, lastError, reason].find((one) => typeof one === 'string');
  return typeof text === 'string' ? text.slice(0, MAX_SUMMARY) : null;
}
