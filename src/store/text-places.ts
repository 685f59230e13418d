/** The columns behind each `TextPlace`, the same in every database. */
import type { TextPlace } from './operations/find-content.ts';

export interface Place {
  /** The table, as `t`. */
  table: string;
  /** The primary key after `team_id`. */
  keys: readonly string[];
  /** Sorts before every key. */
  first: readonly (string | number)[];
  column: string;
  /** How many rows one call scans. */
  rows: number;
  joins?: string;
  /** SQL for the id of its workflow. */
  workflow: string;
  /** SQL for `HeldText.about`. */
  about?: string;
}

const OF_AN_ATTEMPT = {
  table: 'attempt',
  keys: ['delivery_id', 'number'],
  first: ['', 0],
  rows: 100,
  joins: `join delivery on delivery.team_id = t.team_id and delivery.id = t.delivery_id
          join event on event.team_id = t.team_id and event.sequence = delivery.event_sequence`,
  workflow: 'event.workflow_id',
  about: 'event.body',
} as const;

const OF_AN_INSPECTOR = {
  table: 'inspected_request',
  keys: ['inspector_id', 'number'],
  first: ['', 0],
  rows: 20,
  workflow: 't.workflow_id',
} as const;

export const PLACES: Readonly<Record<TextPlace, Place>> = {
  event: {
    table: 'event',
    keys: ['sequence'],
    first: [0],
    column: 'body',
    rows: 200,
    workflow: 't.workflow_id',
  },
  response: { ...OF_AN_ATTEMPT, column: 'response' },
  attemptDetails: { ...OF_AN_ATTEMPT, column: 'details' },
  attemptError: { ...OF_AN_ATTEMPT, column: 'error' },
  pausedReason: {
    table: 'webhook',
    keys: ['id'],
    first: [''],
    column: 'paused_reason',
    rows: 500,
    workflow: 't.workflow_id',
  },
  jobError: {
    table: 'job',
    keys: ['id'],
    first: [''],
    column: 'error',
    rows: 500,
    workflow: 't.workflow_id',
  },
  jobLog: {
    table: 'job_log',
    keys: ['job_id', 'attempt', 'part', 'seq'],
    first: ['', 0, 0, 0],
    column: 'body',
    rows: 20,
    joins: 'join job on job.team_id = t.team_id and job.id = t.job_id',
    workflow: 'job.workflow_id',
  },
  jobProgress: {
    table: 'job',
    keys: ['id'],
    first: [''],
    column: 'progress',
    rows: 500,
    workflow: 't.workflow_id',
  },
  state: { table: 'workflow', keys: ['id'], first: [''], column: 'state', rows: 10, workflow: 't.id' },
  fields: {
    table: 'version',
    keys: ['workflow_id', 'number'],
    first: ['', 0],
    column: 'fields',
    rows: 200,
    workflow: 't.workflow_id',
  },
  inspectedRequest: { ...OF_AN_INSPECTOR, column: 'request' },
  inspectedBody: { ...OF_AN_INSPECTOR, column: 'body' },
};
