/**
 * A model of filters, first versions, cooldowns and digests: which messages must arrive at a webhook, from all that has
 * happened.
 * It shares no code with the service.
 */
import type { Filter, Item, Seen } from './filters.ts';

export interface Rule {
  filter: Filter;
  firstVersion: 'send' | 'skip' | null;
  /** What `firstVersion` means, also if it is null. */
  skipsFirst: boolean;
  cooldownMs: number | null;
  /** A period, or a time of day in UTC, in milliseconds. */
  digest: { everyMs: number } | { atMs: number } | null;
}

export type Difference = NonNullable<Seen['difference']>;

export interface Happened extends Omit<Seen, 'difference'> {
  id: string;
  at: number;
  body: string;
  /** The differences of a version, null for other events. */
  differences: Difference[] | null;
}

export interface Digest {
  from: number;
  until: number;
  matched: number;
  records: (Difference & { workflowId: string | null })[];
  /** The ids of events without differences. */
  events: string[];
}

/** What has happened, for one webhook. `decide`: the service has decided everything that was due at this time. */
export type Entry = { rule: Rule | null; at?: number } | { event: Happened } | { decide: number };

/** `event` is null at the end of cooldowns, `differences` is null if the event's body is sent as it is. */
export interface Message {
  event: Happened | null;
  workflowId: string | null;
  differences: Difference[] | null;
  digest?: Digest;
}

const DAY_MS = 86_400_000;

/** When a digest ends that begins at a time. */
function endOf(digest: NonNullable<Rule['digest']>, at: number): number {
  if ('everyMs' in digest) return at + digest.everyMs;
  return Math.floor((at - digest.atMs) / DAY_MS + 1) * DAY_MS + digest.atMs;
}

export function expectedMessages(log: readonly Entry[]): Message[] {
  const messages: Message[] = [];
  interface Quiet {
    until: number;
    sent: Item | null;
    newest: Item | null;
    event: Happened;
    rule: Rule;
  }
  const quiet = new Map<string, Quiet>();
  const waiting: [Happened, Rule][] = [];
  const seen: Happened[] = [];
  /** The rule that is in force. */
  let current: Rule | null = null;
  let open = null as (Digest & { workflows: Set<string> }) | null;
  const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

  function sendDigest({ workflows: _, ...digest }: NonNullable<typeof open>): void {
    const from = Math.min(digest.from, digest.until);
    messages.push({ event: null, workflowId: null, differences: null, digest: { ...digest, from } });
    open = null;
  }
  /** Adds a difference, or an event without differences. */
  function gather(
    { workflowId, id }: Happened,
    at: number,
    until: number,
    of: Difference | null,
    isMatch = true,
  ) {
    const known = open?.records.find((one) => one.workflowId === workflowId && one.id === of?.id);
    if (!isMatch && known === undefined) return;
    open ??= { from: at, until, matched: 0, records: [], events: [], workflows: new Set() };
    open.until = until;
    open.from = Math.min(open.from, at);
    open.matched += isMatch ? 1 : 0;
    open.workflows.add(workflowId ?? '');
    if (of === null) open.events.push(id);
    else if (known === undefined) open.records.push({ ...of, workflowId });
    else known.record = of.record;
  }
  /** When the digest ends to which a rule adds something. A digest that is no longer in force is over. */
  function untilOf({ digest }: Rule, at: number): number {
    const end = digest !== null && isSame(digest, current?.digest) ? endOf(digest, at) : at;
    return Math.min(open?.until ?? end, end);
  }
  /** Ends what is over: what was over first, and of a digest and a cooldown the one of the first workflow. */
  function end(now: number): void {
    for (;;) {
      const order = ([one, a]: [string, Quiet], [other, b]: [string, Quiet]) =>
        a.until - b.until || (one < other ? -1 : 1);
      const [first] = [...quiet].filter(([, { until }]) => until <= now).sort(order);
      const [key = '', { until } = { until: now + 1 }] = first ?? [];
      const [workflow = ''] = [...(open?.workflows ?? [])].sort();
      const isDigest = open !== null && (open.until < until || (open.until === until && workflow <= key));
      if (open !== null && isDigest && open.until <= now) sendDigest(open);
      else if (first === undefined) return;
      else endCooldowns(key, first[1], now);
    }
  }
  /** Ends cooldowns of one workflow and rule together. What they ended with is the newest event of them. */
  function endCooldowns(first: string, { until: at, rule }: Quiet, now: number): void {
    const workflow = first.slice(0, first.indexOf(' ') + 1);
    const ended = [...quiet].filter(
      ([key, one]) => key.startsWith(workflow) && one.rule === rule && one.until <= now,
    );
    const event = ended
      .map(([, one]) => one.event)
      .reduce((a, b) => (seen.indexOf(a) > seen.indexOf(b) ? a : b));
    ended.sort(([, a], [, b]) => a.until - b.until);
    for (const [key, one] of ended) {
      // Those that end after this digest belong into the next one.
      if (rule.digest !== null && open !== null && one.until !== at && one.until >= open.until) break;
      endCooldown(key, one, event, now);
    }
  }
  function endCooldown(
    key: string,
    { until, sent, newest, rule }: Quiet,
    event: Happened,
    now: number,
  ): void {
    quiet.delete(key);
    const difference = { id: key.slice(key.indexOf(' ') + 1), previous: sent, record: newest };
    if (isSame(sent, newest)) return;
    const { filter } = rule;
    if (filter.holds({ ...event, difference: filter.readsRecord ? difference : null }) !== true) return;
    if (rule.digest !== null) {
      gather(event, until, untilOf(rule, until), difference);
      return;
    }
    messages.push({ event: null, workflowId: event.workflowId, differences: [difference] });
    const next = until + (rule.cooldownMs ?? 0);
    if (next > now) quiet.set(key, { until: next, sent: newest, newest, event, rule });
  }
  function decide(event: Happened, rule: Rule): void {
    const { filter, cooldownMs, skipsFirst, digest } = rule;
    const { differences, workflowId, at } = event;
    seen.push(event);
    const isQuiet = [...quiet.values()].some((one) => one.event.workflowId === workflowId);
    const isGathered = workflowId !== null && open?.workflows.has(workflowId) === true;
    if (digest !== null || cooldownMs !== null || isQuiet || isGathered) end(at);
    const until = digest === null ? at : untilOf(rule, at);
    if (digest !== null && open !== null) open.until = until;
    if (skipsFirst && differences !== null && event.version === 1) return;
    const holds = (difference: Difference | null) => filter.holds({ ...event, difference }) === true;
    if (!filter.readsRecord && !holds(null)) return;
    if (differences === null || (!filter.readsRecord && digest === null)) {
      if (!holds(null)) return;
      if (digest !== null) gather(event, at, until, null);
      else messages.push({ event, workflowId, differences: null });
      return;
    }
    // Only if the clock was set back, a digest is open that the rule no longer has. It is not mixed with what is sent.
    const isMixed = differences.some(({ id }) =>
      open?.records.some((one) => one.workflowId === workflowId && one.id === id),
    );
    if (digest === null && open !== null && isMixed) sendDigest(open);
    const sent = differences.filter((difference) => {
      const { id, record } = difference;
      const key = `${workflowId} ${id}`;
      const known = quiet.get(key);
      if (known !== undefined) Object.assign(known, { newest: record, event, rule });
      if (known !== undefined) return false;
      const isMatch = !filter.readsRecord || holds(difference);
      if (digest !== null) gather(event, at, until, difference, isMatch);
      if (digest !== null || !isMatch) return false;
      const end = at + (cooldownMs ?? 0);
      if (end > at) quiet.set(key, { until: end, sent: record, newest: record, event, rule });
      return true;
    });
    if (sent.length > 0) messages.push({ event, workflowId, differences: sent });
  }
  for (const entry of log) {
    if ('rule' in entry) {
      const isOver = open !== null && !isSame(current?.digest ?? null, entry.rule?.digest ?? null);
      if (isOver && open !== null) open.until = Math.min(open.until, entry.at ?? open.until);
      current = entry.rule;
    } else if ('event' in entry && current === null)
      messages.push({ ...entry, workflowId: null, differences: null });
    else if ('event' in entry) waiting.push([entry.event, current as Rule]);
    else {
      for (const [event, rule] of waiting.splice(0)) decide(event, rule);
      end(entry.decide);
    }
  }
  return messages;
}
