/** Names and aliases of events, and the JSON of their bodies. */
import { durationWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { nearest } from '../std/nearest.ts';
import type { RecordCounts } from './job.ts';

export const EVENT_TYPES = [
  'workflow_queued',
  'workflow_started',
  'workflow_data_change',
  'workflow_schema_changed',
  'workflow_expectation_failed',
  'workflow_finished',
  'workflow_failed',
  'workflow_canceled',
  'workflow_stale',
  'workflow_recovered',
  'webhook_test',
  'webhook_paused',
  'webhook_failing',
  'webhook_digest',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Aliases that other products use for the same events, in lowercase. */
const ALIASES: Readonly<Record<string, EventType | '*'>> = {
  '*': '*',
  all: '*',
  ...aliases('workflow_queued', ['queued']),
  ...aliases('workflow_started', ['started', 'running']),
  ...aliases('workflow_finished', ['finished', 'completed', 'succeeded', 'success']),
  ...aliases('workflow_failed', ['failed', 'error']),
  ...aliases('workflow_canceled', ['canceled', 'cancelled', 'aborted']),
  'workflow.stale': 'workflow_stale',
  'data.stale': 'workflow_stale',
  'workflow.recovered': 'workflow_recovered',
  'workflow.schema_changed': 'workflow_schema_changed',
  'schema.changed': 'workflow_schema_changed',
  'data.changed': 'workflow_data_change',
  'data.change': 'workflow_data_change',
  'data.updated': 'workflow_data_change',
  data_changed: 'workflow_data_change',
  data_change: 'workflow_data_change',
  data_updated: 'workflow_data_change',
  'workflow.data_change': 'workflow_data_change',
  'workflow.data_changed': 'workflow_data_change',
  workflow_data_changed: 'workflow_data_change',
  'webhook.test': 'webhook_test',
  test: 'webhook_test',
  'webhook.paused': 'webhook_paused',
  'webhook.failing': 'webhook_failing',
  'webhook.digest': 'webhook_digest',
};

function aliases(type: EventType, endings: readonly string[]): Record<string, EventType> {
  const nouns = ['job.', 'job_', 'run.', 'run_', 'workflow.', 'workflow_'];
  return Object.fromEntries(nouns.flatMap((noun) => endings.map((ending) => [noun + ending, type])));
}

export function aliasesOf(type: EventType): string[] {
  return Object.keys(ALIASES).filter((name) => ALIASES[name] === type && name !== type);
}

/**
 * Returns the event type for a name in a subscription: `*` for all events, undefined for a name that matches no event.
 */
export function canonicalEvent(name: string): EventType | '*' | undefined {
  const lower = name.toLowerCase();
  if ((EVENT_TYPES as readonly string[]).includes(lower)) return lower as EventType;
  return Object.hasOwn(ALIASES, lower) ? ALIASES[lower] : undefined;
}

/** Splits subscribed names into event types and names that never fire. */
export function canonicalEvents(names: readonly string[]): { known: (EventType | '*')[]; unknown: string[] } {
  const known: (EventType | '*')[] = [];
  const unknown: string[] = [];
  for (const name of names) {
    const type = canonicalEvent(name);
    if (type === undefined) unknown.push(name);
    else known.push(type);
  }
  return { known, unknown };
}

/** Maximum number of characters of an event name that error sentences quote. */
const MAX_SHOWN_NAME = 100;

/** The event type or alias that is most similar to a name that never fires. */
export function nearestEvent(name: string): string | undefined {
  return nearest(name, [...EVENT_TYPES, ...Object.keys(ALIASES)]);
}

/**
 * The error for an event name that never fires. It suggests a similar name: `"job.finishd" never fires here; did you
 * mean "job.finished"?`. Undefined if the event name fires.
 */
export function eventNameMistake(name: string): string | undefined {
  if (canonicalEvent(name) !== undefined) return undefined;
  const meant = nearestEvent(name);
  const advice = meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`;
  return `${JSON.stringify(name.slice(0, MAX_SHOWN_NAME))} never fires here${advice}`;
}

/**
 * Like `eventNameMistake`, for the first name in a list that never fires. The error lists all events if no event has a
 * similar name.
 */
export function eventNamesMistake(names: readonly string[]): string | undefined {
  const mistake = names.map(eventNameMistake).find((one) => one !== undefined);
  if (mistake === undefined || mistake.endsWith('?')) return mistake;
  return `${mistake}; the events are ${EVENT_TYPES.join(', ')}, and * for all`;
}

/** Facts that every event about a job includes. */
export interface JobFacts {
  workflowId: string;
  jobId: string;
  state: string;
  queuedAt: number;
  startedAt: number | null;
  finishedAt: number | null;
}

/** The `data` of an event about a job. Times are in ISO 8601; times that are null are left out. */
export function jobData(facts: JobFacts): Record<string, unknown> {
  return {
    workflowId: facts.workflowId,
    jobId: facts.jobId,
    state: facts.state,
    queuedAt: toIso(facts.queuedAt),
    ...(facts.startedAt === null ? {} : { startedAt: toIso(facts.startedAt) }),
    ...(facts.finishedAt === null ? {} : { finishedAt: toIso(facts.finishedAt) }),
  };
}

/** Additional `data` of events about a job that has finished. */
export function publishedData(input: {
  publicUrl: string;
  workflowId: string;
  version: number;
  records: RecordCounts;
  /** Number of records that were set aside. */
  quarantined: number;
}): Record<string, unknown> {
  return {
    version: input.version,
    records: input.records,
    ...(input.quarantined === 0 ? {} : { quarantined: input.quarantined }),
    dataUrl: `${input.publicUrl}/v1/workflows/${encodeURIComponent(input.workflowId)}/data`,
  };
}

/** The URL that returns all differences between two versions. */
export function changesUrl(input: {
  publicUrl: string;
  workflowId: string;
  previousVersion: number;
  version: number;
}): string {
  const { publicUrl, workflowId, previousVersion, version } = input;
  const path = `/v1/workflows/${encodeURIComponent(workflowId)}/changes`;
  return `${publicUrl}${path}?since=${previousVersion}&until=${version}`;
}

/** The `data` of `workflow_stale`. Times in epoch milliseconds. */
export function staleData({
  nowMs,
  workflowId,
  freshMs,
  freshDueAt,
  version,
  lastJob,
}: {
  nowMs: number;
  workflowId: string;
  freshMs: number;
  freshDueAt: number;
  version: number;
  /** The most recent job that has ended. */
  lastJob: { id: string; state: string; finishedAt: number | null; error: string | null } | null;
}): Record<string, unknown> {
  const waitingSince = freshDueAt - freshMs;
  return {
    workflowId,
    reason: `No run has succeeded for ${durationWords(nowMs - waitingSince)}`,
    freshMs,
    waitingSince: toIso(waitingSince),
    dueAt: toIso(freshDueAt),
    version,
    lastJob: lastJob && {
      id: lastJob.id,
      state: lastJob.state,
      finishedAt: toIso(lastJob.finishedAt as number),
      error: lastJob.error,
    },
  };
}

/** The `data` of `webhook_test`. */
export function testData(webhookId: string): Record<string, unknown> {
  return { webhookId, message: 'This is a test: nothing has happened' };
}

/** The `data` of `webhook_paused`. */
export function pausedData(webhook: {
  id: string;
  url: string;
  pausedAt: number;
  reason: string;
}): Record<string, unknown> {
  return {
    webhookId: webhook.id,
    url: withoutLogin(webhook.url),
    pausedAt: toIso(webhook.pausedAt),
    reason: webhook.reason,
  };
}

/** The `data` of `webhook_failing`. */
export function failingData(webhook: {
  id: string;
  name: string | null;
  url: string;
  /** Time of the first failure since the last success. */
  since: number;
  /** Failed attempts in a row. */
  failures: number;
  lastError: string | null;
  retriesAt: number;
}): Record<string, unknown> {
  return {
    webhookId: webhook.id,
    name: webhook.name,
    url: withoutLogin(webhook.url),
    since: toIso(webhook.since),
    failures: webhook.failures,
    lastError: webhook.lastError,
    retriesAt: toIso(webhook.retriesAt),
  };
}

/** A URL without user and password. */
function withoutLogin(url: string): string {
  const parsed = new URL(url);
  if (parsed.username === '' && parsed.password === '') return url;
  parsed.username = '';
  parsed.password = '';
  return parsed.href;
}

/**
 * Returns the exact body of an event, which is stored, signed and sent. Standard Webhooks 1.0 puts the name of the
 * event in `type`. Existing receivers of this family of APIs read `eventType`, and receivers of later variants read the
 * flat ids.
 */
export function eventBody(input: {
  id: string;
  teamId: string;
  type: EventType;
  at: number;
  sequence: number;
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
}): string {
  return JSON.stringify({
    id: input.id,
    teamId: input.teamId,
    type: input.type,
    eventType: input.type,
    timestamp: toIso(input.at),
    sequence: input.sequence,
    ...(input.workflowId === null ? {} : { workflowId: input.workflowId }),
    ...(input.jobId === null ? {} : { jobId: input.jobId }),
    ...(input.finishedAt === null ? {} : { finishedAt: toIso(input.finishedAt) }),
    data: input.data,
  });
}
