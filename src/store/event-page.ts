/** Which of the events that were looked through are a page: the same for every driver. */
import type { EventType } from '../model/event.ts';
import { idsBetween } from './id-period.ts';
import type { EventFilter } from './webhook-operations.ts';

/** What is looked at of an event before it is read as a whole. */
export interface LookedAt {
  id: string;
  type: EventType;
  jobId: string | null;
}

/** How many events are looked through for a page: there is no index over types, nor over jobs. */
const LOOKED_THROUGH = 2_000;

/** What is looked through, and at most how many, newest first. */
export function placesOf({
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
    most: isSought ? Math.max(LOOKED_THROUGH, limit + 1) : limit + 1,
  };
}

/** @param looked what `placesOf` says */
export function pageOfEvents(
  looked: readonly LookedAt[],
  { most, types, jobId, limit }: { most: number; limit: number } & Pick<EventFilter, 'types' | 'jobId'>,
): { ids: string[]; next: string | null } {
  const fitting = looked.filter(
    (event) => (types?.includes(event.type) ?? true) && (jobId === undefined || event.jobId === jobId),
  );
  const ids = fitting.slice(0, limit).map(({ id }) => id);
  if (fitting.length > limit) return { ids, next: ids.at(-1) ?? null };
  return { ids, next: looked.length < most ? null : (looked.at(-1)?.id ?? null) };
}
