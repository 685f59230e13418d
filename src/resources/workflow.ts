/** A workflow as callers see it, over HTTP and at the shell. */
import { JOB_STATES } from '../model/job.ts';
import { MISSED, MODES, SOURCE_TYPES, type Workflow } from '../model/workflow.ts';
import { toIsoOrNull } from '../std/clock.ts';
import { isoTime, isoTimeOrNull } from '../std/shape.ts';
import type { Store } from '../store/store.ts';
import { ENDED, shownJob, UNFINISHED } from './job.ts';

export type ShownWorkflow = Awaited<ReturnType<typeof shownWorkflow>>;

/** A workflow with the present state of its records and jobs. */
export async function shownWorkflow(store: Store, { teamId, id, ...workflow }: Workflow) {
  const { definition, pausedAt, nextRunAt } = workflow;
  const of = { teamId, workflowId: id };
  const version = await store.records.version(of);
  const unfinished = await store.jobs.list({ ...of, states: UNFINISHED, limit: 2 });
  const [last] = await store.jobs.list({ ...of, states: ENDED, limit: 1 });
  // A job in slot 1 waits behind the current one.
  const current = unfinished.find(({ slot }) => slot === 0);
  return {
    id,
    name: definition.name,
    source: { type: definition.source.type },
    mode: definition.mode,
    schedule: definition.schedule,
    nextRunAt: pausedAt === null ? toIsoOrNull(nextRunAt) : null,
    paused: pausedAt !== null,
    pausedAt: toIsoOrNull(pausedAt),
    version: workflow.currentVersion,
    records: version?.total ?? 0,
    currentJob: current === undefined ? null : shownJob(current),
    lastJob: last === undefined ? null : shownJob(last),
  };
}

/** The same as JSON Schema, with what lists add on request. */
export const workflowSchema = {
  type: 'object',
  required: ['id', 'name', 'source', 'mode', 'schedule', 'nextRunAt', 'paused', 'version', 'records'],
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    source: { type: 'object', required: ['type'], properties: { type: { enum: SOURCE_TYPES } } },
    mode: { enum: MODES },
    schedule: {
      type: ['object', 'null'],
      description: '`cron` and `timezone`, or `everyMs`; `missed` says what becomes of runs that were missed',
      properties: {
        cron: { type: 'string' },
        timezone: { type: 'string' },
        everyMs: { type: 'integer' },
        missed: { enum: MISSED },
      },
    },
    nextRunAt: { ...isoTimeOrNull, description: 'null without a schedule, and while paused' },
    paused: { type: 'boolean' },
    pausedAt: isoTimeOrNull,
    version: { type: 'integer', description: 'The newest version of its records; 0 before the first' },
    records: { type: 'integer', description: 'How many records that version holds' },
    currentJob: {
      oneOf: [{ $ref: '#/components/schemas/Job' }, { type: 'null' }],
      description: 'Not yet ended',
    },
    lastJob: {
      oneOf: [{ $ref: '#/components/schemas/Job' }, { type: 'null' }],
      description: 'The newest that has ended',
    },
    recentJobs: {
      type: 'array',
      description: 'Where `recentJobs` asked for them: its newest jobs, the newest first',
      items: {
        type: 'object',
        required: ['id', 'state', 'queuedAt', 'startedAt', 'finishedAt'],
        properties: {
          id: { type: 'string' },
          state: { enum: JOB_STATES },
          queuedAt: isoTime,
          startedAt: isoTimeOrNull,
          finishedAt: isoTimeOrNull,
        },
      },
    },
  },
};
