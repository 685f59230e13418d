/**
 * Searches the deliveries of a team, to all webhooks. Without a condition that an index knows, the search reads the
 * deliveries in the order of their ids. With states, a webhook or a workflow it merges the newest deliveries of each
 * webhook, so that a few given-up deliveries are found among a million that have arrived. No index was added for it,
 * because every delivery would have to write it.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { DELIVERY_STATES, type DeliveryState } from '../../../model/delivery.ts';
import type { EventType } from '../../../model/event.ts';
import { idsBetween } from '../../page.ts';
import { both, type Value } from '../../sql.ts';
import type { View } from '../../transaction.ts';
import {
  COLUMNS,
  type DeliverySummary,
  type HistoryPlace,
  JOINS,
  type SummaryRow,
  toSummary,
} from './deliveries.ts';

/** Conditions about the event or the last attempt of a delivery, which no index of deliveries knows. */
export interface Narrowing {
  /** The workflow of the event. */
  workflowId?: string;
  eventTypes?: readonly EventType[];
  /** The status of the last attempt, both bounds inclusive; null: that attempt got no response. */
  status?: { from: number; to: number } | null;
}

/** Selects deliveries of a team. Each field that is given narrows the selection. */
export interface DeliverySelection extends Narrowing {
  teamId: string;
  webhookId?: string;
  /** A label of the webhook. */
  label?: string;
  states?: readonly DeliveryState[];
  /**
   * Text in the last error or response, or in the name or URL of the webhook, ignoring the case of ASCII letters; or exactly the id
   * of the delivery or of its event.
   */
  q?: string;
  /** Creation times in epoch milliseconds, both inclusive. */
  since?: number;
  until?: number;
}

/** Maximum number of deliveries read at a time. */
const PART = 500;
/** Maximum number of deliveries that one page searches. SQLite joins this many with their attempts in 30 ms. */
const MAX_SEARCHED = 2_000;

/**
 * Returns a page of the selected deliveries, newest first, after the delivery `before`. `next` is the last delivery that
 * was looked at, or null after the last page. A page that has searched 2,000 deliveries ends there, so it may be
 * short or empty without being the last one.
 */
export async function search(
  view: View,
  input: DeliverySelection & { before?: string; limit: number },
): Promise<{ rows: DeliverySummary[]; next: string | null }> {
  const { limit, before, eventTypes, status, q, workflowId } = input;
  const isNarrowed = [eventTypes, status, q, workflowId].some((one) => one !== undefined);
  const candidates = await candidatesOf(view, input);
  const rows: DeliverySummary[] = [];
  let end = await placeOf(view, input, before);
  for (let searched = 0; end !== undefined; await nextTurn()) {
    // While few deliveries meet the filter, each part is as large as all before it.
    const wanted = isNarrowed
      ? Math.min(PART, MAX_SEARCHED - searched, Math.max(limit + 1, searched))
      : limit + 1 - rows.length;
    const part = await candidates(end, wanted);
    rows.push(...(await matching(view, input, part)));
    searched += part.length;
    if (rows.length > limit) return { rows: rows.slice(0, limit), next: rows[limit - 1]?.id ?? null };
    end = part.length < wanted ? undefined : part.at(-1);
    if (end !== undefined && searched >= MAX_SEARCHED) return { rows, next: end.id };
  }
  return { rows, next: null };
}

/** The place before which a search starts; undefined if the delivery `before` no longer exists. */
async function placeOf(
  view: View,
  { teamId, until = Number.MAX_SAFE_INTEGER - 1 }: DeliverySelection,
  before: string | undefined,
): Promise<HistoryPlace | undefined> {
  const end = { createdAt: until + 1, id: '' };
  if (before === undefined) return end;
  const last = await view.db.get<HistoryPlace>`
    select created_at as "createdAt", id from delivery where team_id = ${teamId} and id = ${before}`;
  return last !== undefined && last.createdAt > until ? end : last;
}

/** Finds up to `limit` deliveries before a place, newest first, by those conditions that indexes know. */
type Candidates = (end: HistoryPlace, limit: number) => Promise<HistoryPlace[]>;

async function candidatesOf(view: View, input: DeliverySelection): Promise<Candidates> {
  const { teamId, webhookId, label, workflowId, states = DELIVERY_STATES, since = 0, until } = input;
  const isOfAll = webhookId === undefined && label === undefined && workflowId === undefined;
  if (isOfAll && DELIVERY_STATES.every((state) => states.includes(state))) {
    return (end, limit) => {
      const ids = idsBetween('dlv', { since, until, before: end.id === '' ? undefined : end.id });
      return view.db.all<HistoryPlace>`
        select created_at as "createdAt", id from delivery
        where team_id = ${teamId} and id >= ${ids.first} and id < ${ids.end}
          and created_at between ${ids.since} and ${ids.until}
        order by id desc limit ${limit}`;
    };
  }
  const webhookIds = await webhooksOf(view, { teamId, webhookId, label, workflowId });
  return (end, limit) => newestOf(view, { teamId, webhookIds, states, since, end, limit });
}

type Given<Name extends keyof DeliverySelection> = Pick<DeliverySelection, 'teamId'> & {
  [Key in Name]: DeliverySelection[Key] | undefined;
};

/** The text of a label in a JSON list of labels; without a label, a text that every list contains. */
export function inLabels(label: string | undefined): string {
  return label === undefined ? '[' : JSON.stringify(label);
}

/** The webhooks that receive events of a workflow (default: all), also removed ones, whose deliveries are canceled. */
async function webhooksOf(
  view: View,
  { teamId, webhookId, label, workflowId }: Given<'webhookId' | 'label' | 'workflowId'>,
): Promise<string[]> {
  if (webhookId !== undefined && label === undefined) return [webhookId];
  const rows = await view.db.all<{ id: string }>`
    select id from webhook where team_id = ${teamId}
      and coalesce(workflow_id, '') in ('', coalesce(${workflowId ?? null}, workflow_id, ''))
      and id = coalesce(${webhookId ?? null}, id) and strpos(labels, ${inLabels(label)}) > 0`;
  return rows.map(({ id }) => id);
}

// One short index search per webhook and state.
const NEWEST = both((pick) => {
  const newest = `
    created_at >= $4 and (created_at, id) < ($5, $6)
    order by created_at desc, id desc limit $7`;
  return `
  select newest.created_at as "createdAt", newest.id
  from unnest($2::text[]) as wanted (id) cross join unnest($3::text[]) as of_state (name) cross join ${pick({
    sqlite: `delivery newest
  where newest.team_id = $1 and newest.id in (
    select id from delivery indexed by delivery_history
    where team_id = $1 and webhook_id = wanted.id and (state || '') = of_state.name and ${newest})`,
    postgres: `lateral (
    select created_at, id from delivery
    where team_id = $1 and webhook_id = wanted.id and (state || '') = of_state.name and ${newest}) newest`,
  })}
  order by newest.created_at desc, newest.id desc limit $7`;
});

/** Number of webhooks whose deliveries are merged first; each later step takes twice as many, up to `MOST_AT_ONCE`. */
const FIRST_AT_ONCE = 4;
const MOST_AT_ONCE = 512;

/**
 * Merges the newest deliveries of many webhooks. Once `limit` deliveries are known, the other webhooks are only asked
 * for newer ones.
 */
async function newestOf(
  view: View,
  input: {
    teamId: string;
    webhookIds: readonly string[];
    states: readonly DeliveryState[];
    since: number;
    end: HistoryPlace;
    limit: number;
  },
): Promise<HistoryPlace[]> {
  const { teamId, webhookIds, states, end, limit } = input;
  let found: HistoryPlace[] = [];
  let { since } = input;
  for (
    let from = 0, size = FIRST_AT_ONCE;
    from < webhookIds.length;
    size = Math.min(size * 2, MOST_AT_ONCE)
  ) {
    if (from > 0) await nextTurn();
    const some = webhookIds.slice(from, from + size);
    const newer = await view.db.all<HistoryPlace>(
      NEWEST,
      teamId,
      some,
      [...new Set(states)],
      since,
      end.createdAt,
      end.id,
      limit,
    );
    found = [...found, ...newer].sort(newestFirst).slice(0, limit);
    if (found.length === limit) since = Math.max(since, found[limit - 1]?.createdAt ?? 0);
    from += size;
  }
  return found;
}

function newestFirst(one: HistoryPlace, other: HistoryPlace): number {
  return other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1);
}

// PostgreSQL uses a lateral subquery, so that the planner cannot choose to read the whole table.
const DELIVERY = {
  sqlite: 'delivery',
  postgres: 'lateral (select * from delivery where team_id = $1 and id = wanted.id limit 1) delivery',
};

const TEXTS = ['attempt.error', 'attempt.response', 'webhook.name', 'webhook.url'];

/** Returns those of the deliveries that a narrowing selects. */
export async function narrowed<One extends HistoryPlace>(
  view: View,
  teamId: string,
  narrowing: Narrowing,
  of: readonly One[],
): Promise<One[]> {
  if (Object.keys(narrowing).length === 0) return [...of];
  const ids = new Set((await matching(view, { teamId, ...narrowing }, of)).map(({ id }) => id));
  return of.filter(({ id }) => ids.has(id));
}

/** Returns those of the deliveries that meet all conditions, in the same order. */
async function matching(
  view: View,
  { teamId, states, workflowId, eventTypes, status, q }: DeliverySelection,
  of: readonly HistoryPlace[],
): Promise<DeliverySummary[]> {
  if (of.length === 0) return [];
  const values: Value[] = [teamId, of.map(({ id }) => id)];
  const place = (value: Value) => `$${values.push(value)}`;
  const conditions: string[] = [];
  if (states !== undefined) conditions.push(`delivery.state = any(${place(states)}::text[])`);
  // No index has this expression, so that PostgreSQL does not read all events of the workflow.
  if (workflowId !== undefined) conditions.push(`(event.workflow_id || '') = ${place(workflowId)}`);
  if (eventTypes !== undefined) conditions.push(`event.type = any(${place(eventTypes)}::text[])`);
  if (status === null) conditions.push('attempt.outcome is not null and attempt.status is null');
  else if (status !== undefined) {
    conditions.push(`attempt.status between ${place(status.from)} and ${place(status.to)}`);
  }
  if (q !== undefined) {
    const [text, id] = [place(q), place(q)];
    const inTexts = TEXTS.map(
      (column) => `strpos(lower(${column} collate "C"), lower(${text}::text collate "C")) > 0`,
    );
    conditions.push(`(delivery.id = ${id} or event.id = ${id} or ${inTexts.join(' or ')})`);
  }
  const rows = await view.db.all<SummaryRow>(
    `select ${COLUMNS} from unnest($2::text[]) as wanted (id) cross join ${view.db.pick(DELIVERY)} ${JOINS}
     where delivery.team_id = $1 and delivery.id = wanted.id
       ${conditions.map((one) => `and ${one}`).join(' ')}`,
    ...values,
  );
  const byId = new Map(rows.map((row) => [row.id, toSummary(row)]));
  return of.flatMap(({ id }) => byId.get(id) ?? []);
}
