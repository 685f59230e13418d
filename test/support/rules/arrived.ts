/** Compares the bodies that arrived at a webhook with those of the model. */
import assert from 'node:assert/strict';
import { changedFields, changeOf, type Item } from './filters.ts';
import { type Difference, type Entry, expectedMessages } from './model.ts';

interface Body {
  id: string;
  type?: string;
  data: {
    workflowId?: string;
    matched?: number;
    cooldownEnded?: boolean;
    truncated?: boolean;
    differences?: { type: string; id: string; fields: { key: string }[] }[];
    /** Of a digest. */
    from?: string;
    until?: string;
    workflows?: { workflowId: string; matched: number; differences: Listed[]; truncated: boolean }[];
    events?: { id: string }[];
    more?: number;
  };
}

/** A difference as a body lists it, with its fields in the order of their names. */
interface Listed {
  type: string;
  id: string;
  fields: { key: string }[];
}

/** Maximum number of events that a digest lists. */
const MAX_EVENTS = 20;

/** What a webhook received: bodies that were sent as they were, matches, and matches at the end of cooldowns. */
interface Account {
  whole: Record<string, string>;
  matched: Record<string, { matched: number; differences: Listed[] }>;
  /** By workflow and record: what was received about it, in order. */
  heard: Record<string, { ended: boolean; one: Listed }[]>;
  /** Number of differences in all messages at the end of cooldowns. */
  ended: number;
  digests: {
    from: unknown;
    until: unknown;
    matched: unknown;
    records: unknown[];
    events: string[] | number;
  }[];
}

/**
 * @param log what has happened, for the webhook
 * @param bodies what has arrived, each message once, in the order in which it was decided
 * @param how.inOrder false if the order of the bodies is unknown
 * @param how.inFull false if differences may be truncated: then only their numbers are compared
 * @throws AssertionError if a match was lost, doubled or changed
 */
export function assertArrived(
  log: readonly Entry[],
  bodies: readonly string[],
  how: { inOrder?: boolean; inFull?: boolean } = {},
): void {
  const { inOrder = true, inFull = true } = how;
  const expected = expectedAccount(log);
  const wholes = new Set(Object.keys(expected.whole));
  const events = new Set(log.flatMap((entry) => ('event' in entry ? [entry.event.id] : [])));
  const found = accountOf(bodies, events, wholes);
  for (const account of [expected, found]) {
    account.digests = sorted(account.digests);
    if (!inOrder) for (const [key, all] of Object.entries(account.heard)) account.heard[key] = sorted(all);
    if (inFull) continue;
    account.heard = {};
    for (const one of account.digests) one.records = [];
    for (const one of Object.values(account.matched)) one.differences = [];
  }
  assert.deepEqual(found, expected);
}

/** The number of messages that the model knows by their ids, of differences at the end of cooldowns, and of digests. */
export function sizeOf(log: readonly Entry[]): { messages: number; ended: number; digests: number } {
  const { whole, matched, ended, digests } = expectedAccount(log);
  const messages = Object.keys(whole).length + Object.keys(matched).length;
  return { messages, ended, digests: digests.length };
}

function accountOf(
  bodies: readonly string[],
  events: ReadonlySet<string>,
  wholes: ReadonlySet<string>,
): Account {
  const account: Account = { whole: {}, matched: {}, heard: {}, ended: 0, digests: [] };
  const ids = new Set<string>();
  for (const body of bodies) {
    const { id, type, data } = JSON.parse(body) as Body;
    assert.ok(!ids.has(id), `${id} arrived twice`);
    ids.add(id);
    if (type === 'webhook_digest') {
      account.digests.push(digestOf(data));
      continue;
    }
    if (wholes.has(id)) {
      account.whole[id] = body;
      continue;
    }
    const ended = !events.has(id);
    assert.equal(data.cooldownEnded ?? false, ended, `${id} is of ${ended ? 'no' : 'an'} event`);
    const matched = data.matched ?? Number.NaN;
    const differences = sorted((data.differences ?? []).map(inFieldOrder));
    if (!data.truncated) assert.equal(matched, differences.length);
    if (ended) account.ended += matched;
    else account.matched[id] = { matched, differences };
    hear(account, data.workflowId, ended, differences);
  }
  return account;
}

function expectedAccount(log: readonly Entry[]): Account {
  const account: Account = { whole: {}, matched: {}, heard: {}, ended: 0, digests: [] };
  for (const { event, workflowId, differences, digest } of expectedMessages(log)) {
    if (digest !== undefined) {
      const { from, until, matched, records, events } = digest;
      account.digests.push({
        from: new Date(from).toISOString(),
        until: new Date(until).toISOString(),
        matched,
        records: sorted(records.map((one) => ({ workflowId: one.workflowId, ...newest(one) }))),
        events: events.length > MAX_EVENTS ? events.length : events.toSorted(),
      });
      continue;
    }
    if (differences === null) {
      if (event !== null) account.whole[event.id] = event.body;
      continue;
    }
    const all = sorted(differences.map(listed));
    if (event === null) account.ended += all.length;
    else account.matched[event.id] = { matched: all.length, differences: all };
    hear(account, workflowId, event === null, all);
  }
  return account;
}

function digestOf({
  from,
  until,
  matched,
  workflows = [],
  events = [],
  more = 0,
}: Body['data']): Account['digests'][number] {
  const records = workflows.flatMap(({ workflowId, differences }) =>
    differences.map(({ type, id, fields }) => ({ workflowId, ...inFieldOrder({ type, id, fields }) })),
  );
  const shown = more > 0 ? events.length + more : events.map(({ id }) => id).toSorted();
  return { from, until, matched, records: sorted(records), events: shown };
}

function hear({ heard }: Account, workflowId: unknown, ended: boolean, all: readonly Listed[]): void {
  for (const one of all) {
    const key = `${workflowId} ${one.id}`;
    heard[key] ??= [];
    heard[key].push({ ended, one });
  }
}

function inFieldOrder({ type, id, fields }: Listed): Listed {
  return { type, id, fields: fields.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
}

function listed({ id, previous, record }: Difference): Listed {
  const fields = changedFields({ id, previous, record }).map((key) => ({
    key,
    ...(Object.hasOwn(record ?? {}, key) ? { value: record?.[key as keyof Item] } : {}),
    ...(Object.hasOwn(previous ?? {}, key) ? { previousValue: previous?.[key as keyof Item] } : {}),
  }));
  return { type: changeOf({ id, previous, record }), id, fields };
}

/** A record that came and went within a digest has no state at all. */
function newest(one: Difference): Listed {
  const isGone = one.previous === null && one.record === null;
  return isGone ? { type: 'removed', id: one.id, fields: [] } : listed(one);
}

function sorted<One>(all: readonly One[]): One[] {
  return all.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
