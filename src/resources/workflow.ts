/** A workflow, its records and their versions, as the API returns them. */
import { DEFAULT_KEEP, MISSED, MODES, SOURCE_TYPES, type Workflow } from '../model/workflow.ts';
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
import { type JobGlance, NO_HISTORY, type WorkflowSummary } from '../store/operations/job-lists.ts';
import type { Store } from '../store/store.ts';
import { ENDED as ENDED_AT, IDS } from './examples.ts';
import { glance, jobFields, jobResource, recordCounts } from './job.ts';

export const workflowResource = named(
  'Workflow',
  object({
    id: text(),
    name: text(),
    source: object({ type: choice(SOURCE_TYPES) }),
    mode: choice(MODES),
    schedule: as(
      '`cron` with `timezone`, or `everyMs`. `missed`: with `run`, one run replaces all missed runs; with ' +
        '`skip`, they are skipped. `null` if the workflow has no schedule',
      nullable(
        object({
          cron: optional(text()),
          timezone: optional(text()),
          everyMs: optional(integer('Interval in milliseconds')),
          missed: choice(MISSED),
        }),
      ),
    ),
    nextRunAt: nullable(
      time('Time of the next scheduled run. `null` if there is no schedule or the workflow is paused'),
    ),
    paused: boolean(),
    pausedAt: nullable(time('Time when the workflow was paused. `null` if it is not paused')),
    freshUntil: nullable(
      time(
        'Time by which a run must succeed; if the workflow is stale, this time has passed. `null` if the definition has no ' +
          '`fresh` or the workflow is paused',
      ),
    ),
    staleSince: nullable(
      time(
        'Time when the workflow was found to be stale: no run has succeeded for `fresh`. `null` if it is not stale',
      ),
    ),
    version: integer('Newest version of the records. 0 before the first'),
    records: integer('Number of records in the newest version'),
    keep: as(
      'Versions that are kept: the newest `versions`, superseded at most `days` ago',
      object({ versions: integer(), days: integer() }),
    ),
    history: object({
      versions: integer('Number of versions that can be read'),
      oldest: as(
        'Oldest version that can be read. `null` before the first version',
        nullable(object({ version: integer(), publishedAt: time() })),
      ),
      bytes: integer('Size of the records that only older versions contain, in bytes, without indexes'),
    }),
    currentJob: as('Current unfinished job. `null` if there is none', nullable(jobResource)),
    lastJob: as('Most recent job that has ended. `null` if there is none', nullable(jobResource)),
    recentJobs: optional(
      list(glance, 'Newest jobs first. Present only if the query parameter `recentJobs` is set'),
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
    freshUntil: '2026-11-22T04:00:03.120Z',
    staleSince: null,
    version: 17,
    records: 120,
    keep: { versions: 500, days: 90 },
    history: { versions: 12, oldest: { version: 6, publishedAt: '2026-11-12T06:00:04.512Z' }, bytes: 18_240 },
    currentJob: null,
    lastJob: jobResource.example,
  },
);

/**
 * A workflow with the current state of its records and jobs.
 *
 * @param summary the current state, if the caller has read it already
 * @param recent its newest jobs, if the caller asked for them
 */
export async function shownWorkflow(
  store: Store,
  { teamId, id, ...of }: Workflow,
  {
    summary,
    recent,
  }: { summary?: WorkflowSummary | undefined; recent?: readonly JobGlance[] | undefined } = {},
) {
  const { definition, pausedAt, nextRunAt, freshDueAt, staleSince } = of;
  const { records, history, current, last } =
    summary ?? (await store.jobs.summaries({ teamId, workflowIds: [id] })).get(id) ?? NO_SUMMARY;
  return workflowResource.of({
    ...definition,
    id,
    nextRunAt: pausedAt === null ? nextRunAt : null,
    paused: pausedAt !== null,
    pausedAt,
    freshUntil: pausedAt === null ? freshDueAt : null,
    staleSince,
    version: of.currentVersion,
    records,
    keep: definition.keep ?? DEFAULT_KEEP,
    history,
    currentJob: current === undefined ? null : jobFields(current),
    lastJob: last === undefined ? null : jobFields(last),
    recentJobs: recent?.map(({ createdAt, ...glance }) => ({ ...glance, queuedAt: createdAt })),
  });
}

const NO_SUMMARY: WorkflowSummary = {
  records: 0,
  history: NO_HISTORY,
  current: undefined,
  last: undefined,
};

export const recordResource = named(
  'Record',
  raw<{ id: string; name?: string; email?: string; [field: string]: unknown }>({
    type: 'object',
    description: 'Data record. A workflow may add further fields',
    properties: {
      id: { type: 'string', description: 'Record ID, unique within the workflow' },
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
    jobId: text('ID of the job that published the version'),
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

const changedFields = list(
  object({ key: text(), value: optional(raw<unknown>({})), previousValue: optional(raw<unknown>({})) }),
  'Fields that changed. Present only if `type` is `changed` or `removed`',
);

export const changeResource = named(
  'Change',
  object({
    type: choice(['added', 'changed', 'removed']),
    id: text('Record ID'),
    version: integer('Version that published the last state of the record'),
    record: optional(as('Added record. Present only if `type` is `added`', recordResource)),
    fields: optional(changedFields),
  }),
  {
    type: 'changed',
    id: '17',
    version: 17,
    fields: [{ key: 'name', value: 'Ada Lovelace', previousValue: 'Ada Byron' }],
  },
);

export const recordChangeResource = named(
  'RecordChange',
  object({
    type: as(
      'Change that the version made to the record. `existing`: the oldest state that is stored; what happened before is no ' +
        'longer known',
      choice(['added', 'changed', 'removed', 'existing']),
    ),
    version: integer('Version that published the change; for `existing` the oldest version that can be read'),
    publishedAt: time('Time when the version was published'),
    jobId: text('ID of the job that published the version'),
    record: optional(as('The record. Present only if `type` is `added` or `existing`', recordResource)),
    fields: optional(changedFields),
  }),
  {
    type: 'changed',
    version: 17,
    publishedAt: ENDED_AT,
    jobId: IDS.job,
    fields: [{ key: 'name', value: 'Ada Lovelace', previousValue: 'Ada Byron' }],
  },
);
