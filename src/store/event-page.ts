/** Filters and cuts a page of events from those scanned: the same for every driver. */
import type { EventType } from '../model/event.ts';
import { idsBetween } from './id-period.ts';
import type { EventFilter } from './webhook-operations.ts';

/** What filtering needs of an event; its body is read only if it is on the page. */
export interface ScannedEvent {
  id: string;
  type: EventType;
  jobId: string | null;
}

/** How many events are scanned for a page: there is no index over types or jobs. */
const MAX_SCANNED = 2_000;

/** The range of ids to scan, newest first, and at most how many. */
export function scanRange({
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
export function pageOf(
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
