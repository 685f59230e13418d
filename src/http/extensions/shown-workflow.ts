/** A workflow as callers see it, over HTTP and at the shell. */
import type { Workflow } from '../../model/workflow.ts';
import { toIso } from '../../std/clock.ts';
import type { Store } from '../../store/store.ts';
import { ENDED, shownJob, UNFINISHED } from './shown-job.ts';

export type ShownWorkflow = Awaited<ReturnType<typeof shownWorkflow>>;

/** What is told of a workflow, with its records and jobs as they stand now. */
export async function shownWorkflow(store: Store, { teamId, id, ...workflow }: Workflow) {
  const { definition, pausedAt, nextRunAt } = workflow;
  const of = { teamId, workflowId: id };
  const version = await store.records.version(of);
  const unfinished = await store.jobs.list({ ...of, states: UNFINISHED, limit: 2 });
  const [last] = await store.jobs.list({ ...of, states: ENDED, limit: 1 });
  // One that waits behind another is not the current one.
  const current = unfinished.find(({ slot }) => slot === 0);
  return {
    id,
    name: definition.name,
    source: { type: definition.source.type },
    mode: definition.mode,
    schedule: definition.schedule,
    nextRunAt: nextRunAt === null || pausedAt !== null ? null : toIso(nextRunAt),
    paused: pausedAt !== null,
    pausedAt: pausedAt === null ? null : toIso(pausedAt),
    version: workflow.currentVersion,
    records: version?.total ?? 0,
    currentJob: current === undefined ? null : shownJob(current),
    lastJob: last === undefined ? null : shownJob(last),
  };
}
