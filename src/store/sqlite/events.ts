/** Events, and the deliveries that they cause: written in the transaction of what happened. */
import { type EventType, eventBody } from '../../model/event.ts';
import { newId } from '../../std/id.ts';
import type { StoredEvent } from '../store.ts';
import type { Tx, View } from './transaction.ts';

interface EventRow {
  team_id: string;
  id: string;
  sequence: number;
  type: EventType;
  workflow_id: string | null;
  job_id: string | null;
  body: string;
  created_at: number;
}

/**
 * Appends an event and, for every webhook that is subscribed to it at this moment, a delivery that is due now.
 * A paused webhook gets its delivery too: it waits until the webhook is resumed or unsubscribed.
 */
export function appendEvent(
  tx: Tx,
  event: {
    teamId: string;
    type: EventType;
    workflowId: string;
    jobId: string;
    finishedAt: number | null;
    data: Record<string, unknown>;
  },
): void {
  const { teamId, type, workflowId, jobId } = event;
  const counter = tx.db.get<{ sequence: number }>(
    'update team set last_sequence = last_sequence + 1 where id = ? returning last_sequence as sequence',
    teamId,
  );
  if (counter === undefined) throw new Error(`The team ${teamId} of an event does not exist`);
  const { sequence } = counter;
  const id = newId('evt');
  tx.db.run(
    `insert into event (team_id, sequence, id, type, workflow_id, job_id, body, created_at)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    teamId,
    sequence,
    id,
    type,
    workflowId,
    jobId,
    eventBody({ ...event, id, at: tx.now, sequence }),
    tx.now,
  );
  fanOut(tx, { teamId, workflowId, type, sequence });
}

// The index is named, because the planner would walk through all webhooks of the team, the deleted ones included.
const SUBSCRIBED = `
  select id from webhook indexed by webhook_same
  where team_id = ? and coalesce(workflow_id, '') in (?, '') and state <> 'deleted'
    and (instr(fires_for, ?) > 0 or instr(fires_for, '|*|') > 0)
  order by id`;

function fanOut(
  tx: Tx,
  event: { teamId: string; workflowId: string; type: EventType; sequence: number },
): void {
  const { teamId, workflowId, type, sequence } = event;
  for (const webhook of tx.db.all<{ id: string }>(SUBSCRIBED, teamId, workflowId, `|${type}|`)) {
    tx.db.run(
      `insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at)
       values (?, ?, ?, ?, 'waiting', ?, ?)`,
      teamId,
      newId('dlv'),
      webhook.id,
      sequence,
      tx.now,
      tx.now,
    );
    tx.touched.deliveries = true;
  }
}

export function list(
  view: View,
  { teamId, afterSequence, limit }: { teamId: string; afterSequence: number; limit: number },
): StoredEvent[] {
  return view.db
    .all<EventRow>(
      'select * from event where team_id = ? and sequence > ? order by sequence limit ?',
      teamId,
      afterSequence,
      limit,
    )
    .map((row) => ({
      teamId: row.team_id,
      id: row.id,
      sequence: row.sequence,
      type: row.type,
      workflowId: row.workflow_id,
      jobId: row.job_id,
      body: row.body,
      createdAt: row.created_at,
    }));
}
