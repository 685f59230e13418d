/** A workflow, its records and their versions as callers see them. */
import { MISSED, MODES, SOURCE_TYPES, type Workflow } from '../model/workflow.ts';
import {
  as,
  boolean,
  choice,
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  raw,
  text,
  time,
} from '../std/shape.ts';
import type { JobGlance } from '../store/operations/job-lists.ts';
import type { Store } from '../store/store.ts';
import { ENDED as ENDED_AT, IDS } from './examples.ts';
import { ENDED, glance, jobResource, madeOf, recordCounts, UNFINISHED } from './job.ts';

export const workflowResource = named(
  'Workflow',
  object({
    id: text(),
    name: text(),
    source: object({ type: choice(SOURCE_TYPES) }),
    mode: choice(MODES),
    schedule: as(
      '`cron` and `timezone`, or `everyMs`; `missed` says what becomes of runs that were missed',
      nullable(
        object({
          cron: optional(text()),
          timezone: optional(text()),
          everyMs: optional(integer()),
          missed: choice(MISSED),
        }),
      ),
    ),
    nextRunAt: nullable(time('null without a schedule, and while paused')),
    paused: boolean(),
    pausedAt: nullable(time()),
    version: integer('The newest version of its records; 0 before the first'),
    records: integer('How many records that version holds'),
    currentJob: as('Not yet ended', nullable(jobResource)),
    lastJob: as('The newest that has ended', nullable(jobResource)),
    recentJobs: optional(
      list(glance, 'Where `recentJobs` asked for them: its newest jobs, the newest first'),
    ),
  }),
  {
    id: IDS.workflow,
    name: 'People',
    source: { type: 'http' },
    mode: 'replace',
    schedule: { cron: '0 6 * * 1-5', timezone: 'Europe/Berlin', missed: 'run' },
    nextRunAt: '2026-11-23T05:00:00.000Z',
    paused: false,
    pausedAt: null,
    version: 17,
    records: 120,
    currentJob: null,
    lastJob: jobResource.example,
  },
);

/**
 * A workflow with the present state of its records and jobs.
 *
 * @param recent its newest jobs, where they were asked for
 */
export async function shownWorkflow(
  store: Store,
  { teamId, id, ...of }: Workflow,
  recent?: readonly JobGlance[],
) {
  const { definition, pausedAt, nextRunAt } = of;
  const place = { teamId, workflowId: id };
  const version = await store.records.version(place);
  const unfinished = await store.jobs.list({ ...place, states: UNFINISHED, limit: 2 });
  const [last] = await store.jobs.list({ ...place, states: ENDED, limit: 1 });
  // A job in slot 1 waits behind the current one.
  const current = unfinished.find(({ slot }) => slot === 0);
  return workflowResource.of({
    ...definition,
    id,
    nextRunAt: pausedAt === null ? nextRunAt : null,
    paused: pausedAt !== null,
    pausedAt,
    version: of.currentVersion,
    records: version?.total ?? 0,
    currentJob: current === undefined ? null : madeOf(current),
    lastJob: last === undefined ? null : madeOf(last),
    recentJobs: recent?.map(({ createdAt, ...glance }) => ({ ...glance, queuedAt: createdAt })),
  });
}

/** A data record. */
export const recordResource = named(
  'Record',
  raw<{ id: string; name?: string; email?: string; [field: string]: unknown }>({
    type: 'object',
    description: 'A data record. A workflow may add other fields.',
    properties: {
      id: { type: 'string', description: 'Record identifier' },
      name: { type: 'string' },
      email: { type: 'string' },
    },
    additionalProperties: true,
  }),
  { id: '17', name: 'Ada Lovelace', email: 'ada@example.com' },
);

export const versionResource = named(
  'Version',
  object({
    number: integer(),
    jobId: text('The job that published it'),
    publishedAt: time(),
    records: recordCounts,
  }),
  {
    number: 17,
    jobId: IDS.job,
    publishedAt: ENDED_AT,
    records: { total: 120, added: 1, changed: 1, removed: 0 },
  },
);

export const changeResource = named(
  'Change',
  object({
    type: choice(['added', 'changed', 'removed']),
    id: text('Record identifier'),
    version: integer('The version that brought its last state'),
    record: optional(as('Of a record that was added', recordResource)),
    fields: optional(
      list(
        object({ key: text(), value: optional(raw<unknown>({})), previousValue: optional(raw<unknown>({})) }),
        'Of a record that was changed or removed',
      ),
    ),
  }),
  {
    type: 'changed',
    id: '17',
    version: 17,
    fields: [{ key: 'name', value: 'Ada Lovelace', previousValue: 'Ada Byron' }],
  },
);
