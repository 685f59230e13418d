/** Lists events, newest first: of a team, a workflow or a job. */
import type { EventType } from '../../model/event.ts';
import { idsBetween } from '../id-period.ts';
import type { View } from '../sql.ts';
import type { StoredEvent } from './events.ts';
import { EVENT } from './events.ts';

/** Selects events of a team; times in epoch milliseconds, both inclusive. */
export interface EventFilter {
  teamId: string;
  workflowId?: string;
  /** Give the job's workflow as well, which the index needs. */
  jobId?: string;
  types?: readonly EventType[];
  since?: number;
  until?: number;
}

export interface EventPage {
  events: StoredEvent[];
  /** Pass as `before` for the next page; null after the last one. */
  next: string | null;
}

/**
 * A page of events, newest first. It may be short or even empty and not be the last: filtering by type or job scans a
 * bounded number of events per call.
 */
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
  const events = await view.db.all<StoredEvent>`
    ${EVENT} where team_id = ${teamId} and id = any(${ids}) order by id desc`;
  return { events, next };
}

/** What filtering needs of an event; its body is read only if it is on the page. */
interface ScannedEvent {
  id: string;
  type: EventType;
  jobId: string | null;
}

/** How many events are scanned for a page: there is no index over types or jobs. */
const MAX_SCANNED = 2_000;

/** The range of ids to scan, newest first, and at most how many. */
function scanRange({
  since,
  until,
  before,
  types,
  jobId,
  limit,
}: EventFilter & { before?: string; limit: number }): ReturnType<typeof idsBetween> & { most: number } {
  const isSought = types !== undefined || jobId !== undefined;
  return {
    ...idsBetween('evt', { since, until, before }),
    most: isSought ? Math.max(MAX_SCANNED, limit + 1) : limit + 1,
  };
}

/** @param scanned the events in the range of `scanRange`, newest first */
function pageOf(
  scanned: readonly ScannedEvent[],
  { most, types, jobId, limit }: { most: number; limit: number } & Pick<EventFilter, 'types' | 'jobId'>,
): { ids: string[]; next: string | null } {
  const fitting = scanned.filter(
    (event) => (types?.includes(event.type) ?? true) && (jobId === undefined || event.jobId === jobId),
  );
  const ids = fitting.slice(0, limit).map(({ id }) => id);
  if (fitting.length > limit) return { ids, next: ids.at(-1) ?? null };
  return { ids, next: scanned.length < most ? null : (scanned.at(-1)?.id ?? null) };
}
