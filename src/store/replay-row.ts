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
