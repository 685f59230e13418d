/** The `data` of an event `webhook_digest`, from the rows of the digest. */

import { linkOf, titleOf } from '../../model/messages/notice-row.ts';
import { MAX_DIFFERENCES_BYTES } from '../../model/same-json.ts';
import { toIso } from '../../std/clock.ts';
import {
  type DigestRow,
  type EndedDigest,
  HEAD_KEY,
  isEventKey,
} from '../../store/operations/rules/decisions.ts';
import { ComparedRecord } from './compared-records.ts';
import type { GatheredEvent, Head, HeadNow } from './gathering.ts';

/** Maximum number of differences that the event lists. */
const MAX_LISTED = 100;
/** Maximum numbers of workflows and of other events that it lists. */
const MAX_WORKFLOWS = 50;
const MAX_EVENTS = 20;

/** Maximum number of bytes of the fields of one record, so that no record leaves the others without a place. */
const MAX_FIELDS_BYTES = 2_000;

/** What is listed shares the bytes of the differences of other events. */
class Room {
  #bytes = MAX_DIFFERENCES_BYTES;
  #listed = MAX_LISTED;

  /** Whether a value still fits. */
  takes(value: unknown): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(value)) + 1;
    if (bytes > this.#bytes || this.#listed === 0) return false;
    this.#bytes -= bytes;
    this.#listed -= 1;
    return true;
  }
}

/** What has matched, with the newest state of each record, as far as it fits into an event. */
export function digestData(
  webhookId: string,
  { rows, until }: Pick<EndedDigest, 'rows' | 'until'>,
): Record<string, unknown> {
  const heads = rows.filter(({ key }) => key === HEAD_KEY);
  const from = Math.min(until, ...heads.map(({ sent }) => (JSON.parse(sent ?? '{}') as Head).from ?? until));
  const events = rows.filter(({ key }) => isEventKey(key));
  const room = new Room();
  const listed = events
    .slice(0, MAX_EVENTS)
    .map(({ newest }) => JSON.parse(newest ?? 'null') as GatheredEvent)
    .filter((one) => room.takes(one));
  const byWorkflow = [...Map.groupBy(rows, ({ workflowId }) => workflowId)].filter(([id]) => id !== '');
  const workflows = byWorkflow.slice(0, MAX_WORKFLOWS).map(([id, ofOne]) => workflowData(id, ofOne, room));
  return {
    webhookId,
    from: toIso(from),
    until: toIso(until),
    matched: matchesOf(rows),
    records: rows.filter(isOfRecord).length,
    workflows,
    events: listed,
    more: events.length - listed.length,
  };
}

function workflowData(workflowId: string, rows: readonly DigestRow[], room: Room): Record<string, unknown> {
  const head = rows.find(({ key }) => key === HEAD_KEY);
  const first = JSON.parse(head?.sent ?? '{}') as Partial<Head>;
  const last = JSON.parse(head?.newest ?? '{}') as Partial<HeadNow>;
  const records = rows.filter(isOfRecord);
  const differences: object[] = [];
  for (const row of records) {
    const one = differenceOf(row);
    if (room.takes(one)) differences.push(one);
  }
  return {
    workflowId,
    version: last.version ?? null,
    previousVersion: first.previousVersion ?? null,
    matched: matchesOf(rows),
    records: records.length,
    differences,
    truncated:
      differences.length < records.length ||
      differences.some((one) => 'moreFields' in one) ||
      (head?.matches ?? 0) > 0,
  };
}

function differenceOf({ id, sent, newest }: DigestRow): object {
  const compared = new ComparedRecord({ id, before: sent, after: newest });
  const { record, previous } = compared.exact;
  const states = [record, previous];
  // A record that came and went within the digest has no state at all.
  const type = sent === null && newest === null ? 'removed' : compared.difference.type;
  const all = compared.difference.fields;
  let left = MAX_FIELDS_BYTES;
  const fields = all.filter((one) => {
    const bytes = Buffer.byteLength(JSON.stringify(one));
    if (bytes > left) return false;
    left -= bytes;
    return true;
  });
  const moreFields = all.length - fields.length;
  const listed = { type, id, title: titleOf(states, id), url: linkOf(states), fields };
  return moreFields === 0 ? listed : { ...listed, moreFields };
}

function isOfRecord({ key }: DigestRow): boolean {
  return key !== HEAD_KEY && !isEventKey(key);
}

function matchesOf(rows: readonly DigestRow[]): number {
  return rows.reduce((sum, { matches }) => sum + matches, 0);
}
