/** Lists events, newest first: of a team, a workflow or a job; and the deliveries of one event. */
import { pageOf, type ScannedEvent, scanRange } from '../event-page.ts';
import type { View } from '../sql.ts';
import type { DeliverySummary, EventFilter, EventPage, StoredEvent } from '../webhook-operations.ts';
import { type SummaryRow, summaries, toSummary } from './deliveries.ts';
import { EVENT } from './events.ts';

export async function history(
  view: View,
  input: EventFilter & { before?: string; limit: number },
): Promise<EventPage> {
  const { teamId, workflowId } = input;
  const { first, end, since, until, most } = scanRange(input);
  const [index, ofWorkflow] =
    workflowId === undefined ? ['event_id', ''] : ['event_workflow', 'and workflow_id = $7'];
  const scanned = await view.db.all<ScannedEvent>(
    `select id, type, job_id as "jobId" from event /* use ${index} */
     where team_id = $1 and id >= $2 and id < $3 and created_at between $5 and $6 ${ofWorkflow}
     order by id desc limit $4`,
    teamId,
    first,
    end,
    most,
    since,
    until,
    ...(workflowId === undefined ? [] : [workflowId]),
  );
  const { ids, next } = pageOf(scanned, { ...input, most });
  const events = await view.db.all<StoredEvent>(
    `${EVENT} where team_id = $1 and id = any($2) order by id desc`,
    teamId,
    ids,
  );
  return { events, next };
}

export async function ofEvent(
  view: View,
  { teamId, sequence, before, limit }: { teamId: string; sequence: number; before?: string; limit: number },
): Promise<DeliverySummary[]> {
  const rows = await view.db.all<SummaryRow>(
    `${summaries('delivery_event')} where delivery.team_id = $1 and delivery.event_sequence = $2 and delivery.id < $3
     order by delivery.id desc limit $4`,
    teamId,
    sequence,
    before ?? 'e',
    limit,
  );
  return rows.map(toSummary);
}
