/** The row of a replay in the database, and its mapping to the model; the same for both drivers. */
import type { Replay } from './webhook-operations.ts';

export interface ReplayRow {
  team_id: string;
  id: string;
  webhook_id: string;
  states: string;
  since: number;
  until: number;
  after_at: number;
  after_id: string;
  /** When the last delivery that it sent was due. */
  due_at: number;
  made: number;
  state: Replay['state'];
  created_at: number;
}

export function toReplay(row: ReplayRow): Replay {
  return {
    teamId: row.team_id,
    id: row.id,
    webhookId: row.webhook_id,
    states: JSON.parse(row.states),
    since: row.since,
    until: row.until,
    made: row.made,
    state: row.state,
    createdAt: row.created_at,
  };
}

/** Replayed deliveries due this soon count as waiting; what has failed waits longer for its next attempt. */
export const SOON_MS = 2_000;

/**
 * When the deliveries that a step of a replay sends are due: a millisecond apart, in the order of their events, which
 * lanes then keep. An ordered lane keeps it anyway.
 */
export function dueTimes(
  { due_at: last }: ReplayRow,
  { count, ordered, nowMs }: { count: number; ordered: boolean; nowMs: number },
): number[] {
  if (ordered) return Array(count).fill(nowMs);
  // A time far ahead is one from before the clock was set back.
  const from = last > nowMs + SOON_MS ? nowMs - count : Math.max(last + 1, nowMs - count);
  return Array.from({ length: count }, (_, place) => from + place);
}
