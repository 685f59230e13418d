/** Finds workflows that have become stale, on one node at a time, in the teams that the agenda names. */
import { TOLERANCE_MS } from '../model/schedule.ts';
import { type Chore, inSteps } from '../std/chore.ts';
import { forDueTeams } from '../store/due-teams.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import { everyRow } from '../store/page.ts';

const EVERY_MS = 60_000;
const STEPS = { first: 20, max: 100 };
const FAILED = 'workflows.freshness_not_checked';

/**
 * Creates the chore. Its tick marks every stale workflow, with its event. The first tick, and the first one after the
 * clock was set back, also corrects times that were written while the clock was ahead.
 */
export function freshnessChecking(deps: ChoreDeps): Chore {
  const { store, log } = deps;
  /** The time of the last tick. The first tick finds the clock set back. */
  let latestMs = Number.POSITIVE_INFINITY;
  const visit = (teamId: string, signal: AbortSignal) =>
    inSteps(
      async (limit) => {
        const { done, stale } = await store.freshness.markStale({ teamId, limit });
        for (const workflowId of stale) log.info({ teamId, workflowId }, 'workflow.stale');
        return { done };
      },
      STEPS,
      signal,
    );
  const correct = async (signal: AbortSignal) => {
    for await (const { teamId } of everyRow(store.freshness.ahead, {}, ({ teamId }) => teamId)) {
      if (signal.aborted) return;
      await visit(teamId, signal).catch((err) => log.error({ err, teamId }, FAILED));
    }
  };
  return choreOnOneNode({
    ...deps,
    name: 'workflows.freshness',
    everyMs: EVERY_MS,
    failed: FAILED,
    async work(signal) {
      const nowMs = store.now();
      try {
        if (nowMs < latestMs - TOLERANCE_MS) await correct(signal);
        latestMs = nowMs;
      } catch (err) {
        // In a distributed database, a server may be down. The teams that are due are visited nevertheless.
        log.error({ err }, FAILED);
      }
      await forDueTeams({ ...deps, item: 'fresh', failed: FAILED, signal }, (teamId) =>
        visit(teamId, signal),
      );
    },
  });
}
