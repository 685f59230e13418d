/** The history of events, newest first: of a team, a workflow or a job; and the deliveries of one event. */
import { pageOf, type ScannedEvent, scanRange } from '../event-page.ts';
import type {
  DeliveryOperations,
  DeliverySummary,
  EventOperations,
  EventPage,
} from '../webhook-operations.ts';
import { summary } from './deliveries.ts';
import { get } from './events.ts';
import type { View } from './transaction.ts';

export function history(view: View, input: Parameters<EventOperations['history']>[0]): EventPage {
  const { teamId, workflowId } = input;
  const { first, end, since, until, most } = scanRange(input);
  const scanned =
    workflowId === undefined
      ? view.db.all<ScannedEvent>(OF_TEAM, teamId, first, end, since, until, most)
      : view.db.all<ScannedEvent>(OF_WORKFLOW, teamId, workflowId, first, end, since, until, most);
  const { ids, next } = pageOf(scanned, { ...input, most });
  return { events: ids.map((id) => get(view, { teamId, id })).filter((event) => event !== undefined), next };
}

const OF_TEAM = `
  select id, type, job_id as jobId from event indexed by event_id
  where team_id = ? and id >= ? and id < ? and created_at between ? and ? order by id desc limit ?`;

const OF_WORKFLOW = `
  select id, type, job_id as jobId from event indexed by event_workflow
  where team_id = ? and workflow_id = ? and id >= ? and id < ? and created_at between ? and ?
  order by id desc limit ?`;

export function ofEvent(
  view: View,
  { teamId, sequence, before = '~', limit }: Parameters<DeliveryOperations['ofEvent']>[0],
): DeliverySummary[] {
  return view.db
    .all<{ id: string }>(
      `select id from delivery indexed by delivery_event
       where team_id = ? and event_sequence = ? and id < ? order by id desc limit ?`,
      teamId,
      sequence,
      before,
      limit,
    )
    .map(({ id }) => summary(view, teamId, id) as DeliverySummary);
}
