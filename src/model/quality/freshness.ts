/**
 * Freshness: a workflow whose definition sets `fresh` becomes stale if no run succeeds for that time.
 *
 *     applied, resumed, a run succeeded ──▶ fresh ──no success for `fresh`──▶ stale ──a run succeeded──▶ fresh
 *                                              workflow_stale, once        workflow_recovered
 *
 * A stale workflow stays stale until a run succeeds, or until its definition no longer sets `fresh`. While it is paused
 * or archived, nothing is due.
 */
import type { Definition } from '../workflow.ts';

/** The freshness of a workflow, as stored. Durations in milliseconds, times in epoch milliseconds. */
export interface Freshness {
  /** Null if the definition says nothing about freshness; then the others are null as well. */
  freshMs: number | null;
  /** When the workflow becomes stale, or became due if it is stale. */
  freshDueAt: number | null;
  /** When the workflow was found to be stale; null if it is not. */
  staleSince: number | null;
}

/**
 * Returns the freshness after a definition was applied. If `fresh` has not changed, its time does not move: a change of
 * the name must not hide that no run succeeds.
 *
 * @param before the workflow before; undefined if it is new
 */
export function appliedFreshness(
  definition: Definition,
  before: (Freshness & { archivedAt: number | null }) | undefined,
  nowMs: number,
): Freshness {
  const { freshMs } = definition.expect;
  if (freshMs === null) return { freshMs, freshDueAt: null, staleSince: null };
  const staleSince = before?.staleSince ?? null;
  const keeps = staleSince !== null || (before?.archivedAt === null && before.freshMs === freshMs);
  return { freshMs, freshDueAt: (keeps && before?.freshDueAt) || nowMs + freshMs, staleSince };
}

/** Returns the freshness after a pause: a workflow that is not stale gets the whole time again. */
export function resumedFreshness(before: Freshness, nowMs: number): Freshness {
  const { freshMs, staleSince } = before;
  if (freshMs === null || staleSince !== null) return before;
  return { ...before, freshDueAt: nowMs + freshMs };
}
