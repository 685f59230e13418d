/** The row of a webhook in the database, and its mapping to the model; the same for both drivers. */
import type { Webhook } from '../model/webhook.ts';
import type { Touched } from './store.ts';
import { touchLane } from './touched.ts';

export interface WebhookRow {
  team_id: string;
  id: string;
  workflow_id: string | null;
  url: string;
  events: string;
  state: Webhook['state'];
  settings: string;
  /** Sealed. */
  headers: string | null;
  paused_at: number | null;
  paused_reason: string | null;
  failing_since: number | null;
  last_success_at: number | null;
  /** JSON. */
  breaker: string | null;
  created_at: number;
}

export function toWebhook(row: WebhookRow): Webhook {
  return {
    teamId: row.team_id,
    id: row.id,
    workflowId: row.workflow_id,
    url: row.url,
    events: JSON.parse(row.events),
    state: row.state,
    settings: JSON.parse(row.settings),
    pausedAt: row.paused_at,
    pausedReason: row.paused_reason,
    failingSince: row.failing_since,
    breaker: row.breaker === null ? null : JSON.parse(row.breaker),
    lastSuccessAt: row.last_success_at,
    createdAt: row.created_at,
  };
}

/** A webhook that was changed; makes its sender load it again. */
export function changed(tx: { touched: Touched }, row: WebhookRow | undefined): Webhook | undefined {
  if (row === undefined) return undefined;
  touchLane(tx, row.team_id, row.id);
  return toWebhook(row);
}
