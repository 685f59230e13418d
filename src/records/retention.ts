/** Prunes old versions in the background, in steps so small that no other write waits for long. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import type { Retention } from '../store/operations/versions.ts';
import type { WorkflowPlace } from '../store/rows.ts';

/**
 * What is kept of a workflow: its newest 10 versions that are at most 30 days old, and every version that was current
 * within the last hour, so that a reader who has just started can finish.
 */
const KEEP: Retention = { keepVersions: 10, keepMs: 30 * 24 * 3_600_000, graceMs: 3_600_000 };

const EVERY_MS = 60_000;
/** Workflows looked at in one turn of the event loop: 0.5 ms on SQLite. */
const WORKFLOWS_AT_ONCE = 1_000;
/** Rows, of up to 1 MiB each. */
const STEPS = { first: 50, max: 500 };

export function recordRetention(deps: ChoreDeps): Chore {
  const { records } = deps.store;
  return choreOnOneNode({
    ...deps,
    name: 'records.prune',
    everyMs: EVERY_MS,
    failed: 'records.not_pruned',
    async work(signal) {
      for (let after: WorkflowPlace | undefined; ; ) {
        const { found, next } = await records.prunable({ ...KEEP, after, limit: WORKFLOWS_AT_ONCE });
        for (const workflow of found) {
          await inSteps((limit) => records.prune({ ...workflow, ...KEEP, limit }), STEPS, signal);
          if (signal.aborted) return;
        }
        if (next === null) return;
        after = next;
        await nextTurn();
      }
    },
  });
}
