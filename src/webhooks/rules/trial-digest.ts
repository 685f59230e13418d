/** The digest of a rule that is tried: what a webhook would gather, in memory. */
import type { Digest } from '../../model/digest.ts';
import { eventBody } from '../../model/event.ts';
import { newId } from '../../std/id.ts';
import {
  type DigestRow,
  HEAD_KEY,
  type JudgedEvent,
  type OpenDigest,
} from '../../store/operations/rules/decisions.ts';
import { digestData } from './digest-data.ts';
import { factsOf } from './event-facts.ts';
import type { Progress } from './examination.ts';
import { DigestInMaking } from './gathering.ts';

/** The revision of the rule that is tried. */
const REVISION = 1;

export class TrialDigest {
  readonly #digest: Digest;
  /** By workflow and key. */
  readonly #rows = new Map<string, Map<string, DigestRow>>();
  #sequence = 0;

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  /** When the open digest ends; undefined if none is open. */
  get until(): number | undefined {
    const rows = this.#all();
    return rows.length === 0 ? undefined : Math.min(...rows.map(({ until }) => until));
  }

  /** The rows of the records of a workflow, by the id of the record. */
  records(workflowId: string | null): Map<string, DigestRow> {
    const records = [...this.#of(workflowId).values()].filter(({ key }) => /^[=#]/.test(key));
    return new Map(records.map((row) => [row.id, row]));
  }

  /** Adds what matches in an event, for one step of its examination. */
  begin(event: JudgedEvent, progress: Progress): DigestInMaking {
    const listed = this.#all().filter(({ key }) => key !== HEAD_KEY);
    const open: OpenDigest = {
      until: this.until ?? null,
      rows: listed.length,
      bytes: listed.reduce((sum, { sent, newest }) => sum + bytesOf(sent) + bytesOf(newest), 0),
      head: this.#of(event.workflowId).get(HEAD_KEY),
      inForce: this.#digest,
    };
    const given = { event: { ...event, revision: REVISION }, facts: factsOf(event), progress };
    return new DigestInMaking(this.#digest, open, given);
  }

  /** Keeps what a step has gathered. */
  keep(event: JudgedEvent, { set, remove, digestUntil }: ReturnType<DigestInMaking['changes']>): void {
    const rows = this.#of(event.workflowId);
    this.#sequence = Math.max(this.#sequence, event.sequence);
    for (const { id } of remove) for (const [key, row] of rows) if (row.id === id) rows.delete(key);
    for (const row of set) rows.set(row.key, row);
    if (digestUntil === undefined) return;
    for (const row of this.#all()) row.until = Math.min(row.until, digestUntil);
  }

  /** Ends the digest. Returns the event that the webhook would be sent; undefined if none is open. */
  end(of: { teamId: string; workflowId: string | null }): JudgedEvent | undefined {
    const { until } = this;
    if (until === undefined) return undefined;
    const rows = this.#all().sort((one, other) => compare(order(one), order(other)));
    this.#rows.clear();
    const about = { type: 'webhook_digest', workflowId: of.workflowId, jobId: null } as const;
    const id = newId('evt', until);
    const body = eventBody({
      ...about,
      id,
      teamId: of.teamId,
      at: until,
      sequence: this.#sequence,
      finishedAt: null,
      data: digestData('', { rows, until }),
    });
    return { ...about, eventId: id, sequence: this.#sequence, body, createdAt: until };
  }

  #of(workflowId: string | null): Map<string, DigestRow> {
    const rows = this.#rows.get(workflowId ?? '') ?? new Map<string, DigestRow>();
    this.#rows.set(workflowId ?? '', rows);
    return rows;
  }

  #all(): DigestRow[] {
    return [...this.#rows.values()].flatMap((rows) => [...rows.values()]);
  }
}

const bytesOf = (text: string | null) => Buffer.byteLength(text ?? '');

/** The order in which the store returns the rows. */
function order({ workflowId, sequence, key }: DigestRow): string {
  return JSON.stringify([workflowId, String(sequence).padStart(16, '0'), key]);
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
