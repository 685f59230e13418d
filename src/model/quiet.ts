/**
 * Cooldowns: how long a webhook hears nothing of a record after a difference of the record was sent.
 *
 *     not quiet ── a difference matches: sent ──▶ quiet until at + cooldown ◀──┐
 *         ▲                                        │  │ a difference: held,     │
 *         │                                        │  └ only the newest is kept │
 *         └── over: the newest state equals ───────┴── over: it differs and ────┘
 *             the sent one, or does not match          matches: it is sent
 *
 * Times are in epoch milliseconds. A cooldown is over at `until`, so an event at exactly that time is no longer held.
 */
import { sameJson } from './same-json.ts';

/** A record that a webhook hears nothing about until its cooldown ends. Texts are the record's JSON; null: removed. */
export interface Quiet {
  id: string;
  until: number;
  /** The state that was sent last. */
  sent: string | null;
  /** The newest state. */
  newest: string | null;
}

/** One record's state before and after an event, as JSON text; null if the record did not exist. */
export interface Change {
  id: string;
  before: string | null;
  after: string | null;
}

/**
 * Decides about a difference of one record. `quiet` is the record's cooldown; a cooldown that is over must have been
 * ended with `afterCooldown` before.
 *
 * @param rule.at the time of the event
 * @param rule.cooldownMs null if the webhook has no cooldown; one that runs from an earlier rule still holds its record
 * @param rule.matches whether the filter matches the difference; not called while the record is quiet
 * @returns whether the difference is sent, was held, or does not match, and the record's new cooldown, if any
 */
export function hear(
  quiet: Quiet | undefined,
  change: Change,
  rule: { at: number; cooldownMs: number | null; matches(change: Change): boolean },
): { end: 'sent' | 'held' | 'unmatched'; quiet: Quiet | undefined } {
  const { at, cooldownMs } = rule;
  const { id, after } = change;
  if (quiet !== undefined && at < quiet.until) {
    return { end: 'held', quiet: { ...quiet, newest: after } };
  }
  if (!rule.matches(change)) return { end: 'unmatched', quiet: undefined };
  if (cooldownMs === null) return { end: 'sent', quiet: undefined };
  return { end: 'sent', quiet: { id, until: at + cooldownMs, sent: after, newest: after } };
}

/**
 * Ends a cooldown that is over: what happened to the record meanwhile is sent as one difference, from the state that
 * was sent to the newest one, if these differ and the filter matches. The record is then quiet again, from the end of
 * its cooldown.
 *
 * @param rule.now nothing that happened before this time is still to be heard
 * @param rule.cooldownMs null if the webhook no longer has a cooldown
 * @returns the difference to send, if any, and the record's next cooldown, if any
 */
export function afterCooldown(
  quiet: Quiet,
  rule: { now: number; cooldownMs: number | null; matches(change: Change): boolean },
): { change: Change | undefined; quiet: Quiet | undefined } {
  const { id, sent: before, newest: after } = quiet;
  const change = { id, before, after };
  if (isSame(before, after) || !rule.matches(change)) return { change: undefined, quiet: undefined };
  const until = quiet.until + (rule.cooldownMs ?? 0);
  const isOver = until <= rule.now;
  return { change, quiet: isOver ? undefined : { id, until, sent: after, newest: after } };
}

function isSame(one: string | null, other: string | null): boolean {
  return one === null || other === null ? one === other : sameJson(one, other);
}
