/**
 * A model of filters, first versions and cooldowns: which messages must arrive at a webhook, from all that has happened.
 * It shares no code with the service.
 */
import type { Filter, Item, Seen } from './filters.ts';

export interface Rule {
  filter: Filter;
  firstVersion: 'send' | 'skip' | null;
  /** What `firstVersion` means, also if it is null. */
  skipsFirst: boolean;
  cooldownMs: number | null;
}

export type Difference = NonNullable<Seen['difference']>;

export interface Happened extends Omit<Seen, 'difference'> {
  id: string;
  at: number;
  body: string;
  /** The differences of a version, null for other events. */
  differences: Difference[] | null;
}

/** What has happened, for one webhook. `decide`: the service has decided everything that was due at this time. */
export type Entry = { rule: Rule | null } | { event: Happened } | { decide: number };

/** `event` is null at the end of cooldowns, `differences` is null if the event's body is sent as it is. */
export interface Message {
  event: Happened | null;
  workflowId: string | null;
  differences: Difference[] | null;
}

export function expectedMessages(log: readonly Entry[]): Message[] {
  const messages: Message[] = [];
  const quiet = new Map<
    string,
    { until: number; sent: Item | null; newest: Item | null; event: Happened; rule: Rule }
  >();
  const waiting: [Happened, Rule][] = [];
  let rule: Rule | null = null;
  /** The quiet records are in the order in which they became quiet. */
  function endCooldowns(now: number): void {
    for (const [key, { until, sent, newest, event, rule }] of [...quiet].filter(
      ([, one]) => one.until <= now,
    )) {
      quiet.delete(key);
      const difference = { id: key.slice(key.indexOf(' ') + 1), previous: sent, record: newest };
      if (JSON.stringify(sent) === JSON.stringify(newest)) continue;
      if (rule.filter.holds({ ...event, difference }) !== true) continue;
      messages.push({ event: null, workflowId: event.workflowId, differences: [difference] });
      const next = until + (rule.cooldownMs ?? 0);
      if (next > now) quiet.set(key, { until: next, sent: newest, newest, event, rule });
    }
  }
  function decide(event: Happened, rule: Rule): void {
    endCooldowns(event.at);
    const { filter, cooldownMs, skipsFirst } = rule;
    const { differences, workflowId } = event;
    if (skipsFirst && differences !== null && event.version === 1) return;
    if (differences === null || !filter.readsRecord) {
      const holds = filter.holds({ ...event, difference: null }) === true;
      if (holds) messages.push({ event, workflowId, differences: null });
      return;
    }
    const sent = differences.filter((difference) => {
      const { id, record } = difference;
      const key = `${workflowId} ${id}`;
      const known = quiet.get(key);
      if (known !== undefined) Object.assign(known, { newest: record, event, rule });
      if (known !== undefined || filter.holds({ ...event, difference }) !== true) return false;
      const until = event.at + (cooldownMs ?? 0);
      if (until > event.at) quiet.set(key, { until, sent: record, newest: record, event, rule });
      return true;
    });
    if (sent.length > 0) messages.push({ event, workflowId, differences: sent });
  }
  for (const entry of log) {
    if ('rule' in entry) rule = entry.rule;
    else if ('event' in entry && rule === null)
      messages.push({ ...entry, workflowId: null, differences: null });
    else if ('event' in entry) waiting.push([entry.event, rule as Rule]);
    else {
      for (const [event, rule] of waiting.splice(0)) decide(event, rule);
      endCooldowns(entry.decide);
    }
  }
  return messages;
}
