/** Describes a job in words: its line in a list, the live line while it runs, and its outcome. */
import type { Job, LogLine } from '../../client/src/flowhook-client.ts';
import { bytesWords, countWords, durationWords } from '../std/amounts.ts';
import { fields, type Head } from './terminal.ts';
import { dateWords } from './times.ts';

/**
 * Returns the exit code for a job: 0 if it finished, 7 if its time limit ended it, 1 if it failed otherwise or was
 * canceled.
 */
export function outcomeCode(job: Job): 0 | 1 | 7 {
  if (job.state === 'finished') return 0;
  return job.state === 'failed' && job.reason === 'timeout' ? 7 : 1;
}

/** The headings of `cellsOf`. */
export const JOB_HEADS: readonly Head[] = [
  { name: 'job' },
  { name: 'workflow' },
  { name: 'state' },
  { name: 'origin', drop: 1 },
  { name: 'queued' },
  { name: 'duration', drop: 2 },
  { name: 'result', drop: 3 },
];

/** Returns the cells of a job in a list. `team` is the slug of its team. */
export function cellsOf(job: Job, team: string, nowMs: number): string[] {
  return [
    job.id,
    `${team}/${job.workflowId}`,
    stateWords(job),
    job.origin,
    job.queuedAt,
    runTimeWords(job, nowMs) ?? '-',
    oneLine(resultWords(job, nowMs), 100),
  ];
}

/** Describes the details of a job. `team` is the slug of its team. */
export function jobLines(job: Job, team: string, nowMs: number): string[] {
  const { progress } = job;
  const rows: (readonly [string, string | null])[] = [
    ['job', job.id],
    ['workflow', `${team}/${job.workflowId}`],
    ['state', stateWords(job)],
    ['origin', job.origin],
    ['attempts', String(job.attempt)],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['queued', dateWords(job.queuedAt, nowMs)],
    ['started', dateWords(job.startedAt, nowMs)],
    ['next attempt', job.state === 'retrying' ? dateWords(job.nextAttemptAt, nowMs) : null],
    ['cancel requested', dateWords(job.cancelRequestedAt, nowMs)],
    ['ended', dateWords(job.finishedAt, nowMs)],
    ['duration', runTimeWords(job, nowMs)],
    ['reason', job.reason],
    [job.state === 'canceled' ? 'canceled' : 'error', job.error],
    ['progress', progress && `${countWords(progress.records, 'record')}, ${bytesWords(progress.bytes)}`],
    ['pages', progress === null || progress.pages === null ? null : String(progress.pages)],
    ['message', progress?.message ?? null],
    ['published', job.state === 'finished' ? publishedWords(job) : null],
    ['set aside', job.quarantined ? countWords(job.quarantined, 'record') : null],
    ['not as expected', job.findings?.map(({ message }) => message).join('\n') ?? null],
  ];
  const shown = rows.filter(([, text]) => text !== null);
  // Further lines of a text begin below its first line.
  const indent = `\n${' '.repeat(Math.max(...shown.map(([name]) => name.length)) + 2)}`;
  return fields(shown.map(([name, text]) => [name, text?.replaceAll('\n', indent)]));
}

/** `running`, `canceling`, `retrying (attempt 2)`. */
export function stateWords(job: Job): string {
  const state = job.cancelRequestedAt !== null && job.finishedAt === null ? 'canceling' : job.state;
  return job.attempt > 1 ? `${state} (attempt ${job.attempt})` : state;
}

/**
 * Returns the line that is printed when a job changes its state or begins an attempt, including the first sentence of
 * an error.
 */
export function changeWords(job: Job, nowMs: number): string {
  const state = stateWords(job);
  if (job.state !== 'retrying') return state;
  const [why = ''] = (job.error ?? job.reason ?? '').split(/(?<=[.!?])\s/, 1);
  const next = `${state}, ${nextWords(job, nowMs)}`;
  return why === '' ? next : `${next}: ${oneLine(why, 200)}`;
}

/** Describes the outcome of an ended job, or the progress of a job that has not ended. */
export function resultWords(job: Job, nowMs: number): string {
  switch (job.state) {
    case 'finished':
      return publishedWords(job) + findingWords(job);
    case 'failed':
      return `${job.reason ?? 'error'}: ${job.error ?? ''}`;
    case 'canceled':
      return job.error ?? '';
    case 'retrying':
      return `${nextWords(job, nowMs)}${afterWords(job)}`;
    case 'running':
      return progressWords(job).join(', ');
    case 'queued':
      return '';
  }
}

/** Describes the version that a job has published: `version 3: 120 records, 3 added, 1 changed, 0 removed`. */
export function publishedWords({ version, records }: Job): string {
  if (version === null || records === null) return '';
  const { total, added, changed, removed } = records;
  const all = `version ${version}: ${countWords(total, 'record')}`;
  if (added + changed + removed === 0) return `${all}, nothing changed`;
  return `${all}, ${added} added, ${changed} changed, ${removed} removed`;
}

/** ` (2 findings)` for a finished job that does not meet its expectations; empty otherwise. */
function findingWords({ state, findings }: Job): string {
  return state !== 'finished' || findings === null ? '' : ` (${countWords(findings.length, 'finding')})`;
}

/**
 * The live line on a terminal: records, rate, pages, message and duration of a running job, or the time until the next
 * attempt of a retrying job.
 *
 * @param perSecond records per second; undefined if still unknown
 */
export function liveWords(job: Job, perSecond: number | undefined, nowMs: number): string {
  if (job.state === 'retrying') return `${stateWords(job)}  ${nextWords(job, nowMs)}`;
  const [records, ...more] = progressWords(job);
  const rate = perSecond === undefined ? [] : [`${Math.round(perSecond).toLocaleString('en-GB')}/s`];
  const since = durationWords(nowMs - Date.parse(job.startedAt ?? job.queuedAt));
  return [stateWords(job), ...(records === undefined ? [] : [records, ...rate]), ...more, since].join('  ');
}

/** Returns the time from the start of a job to its end, or to now if it has not ended; null before the start. */
function runTimeWords({ startedAt, finishedAt }: Job, nowMs: number): string | null {
  if (startedAt === null) return null;
  return durationWords((finishedAt === null ? nowMs : Date.parse(finishedAt)) - Date.parse(startedAt));
}

/** Formats a log line. If its text has several lines, all but the first are indented. */
export function logText({ time, level, text }: LogLine): string {
  return `${time} ${level.padEnd(5)} ${text.replaceAll('\n', '\n  ')}`;
}

/** Puts the text on one line, and cuts the line to at most `most` characters. */
export function oneLine(text: string, most: number): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** `in 12 s`, or `now`. */
export function inWords(atMs: number, nowMs: number): string {
  return atMs <= nowMs ? 'now' : `in ${durationWords(atMs - nowMs)}`;
}

function nextWords({ nextAttemptAt }: Job, nowMs: number): string {
  return `next attempt ${inWords(nextAttemptAt === null ? 0 : Date.parse(nextAttemptAt), nowMs)}`;
}

function progressWords({ progress }: Job): string[] {
  if (progress === null) return [];
  const { records, bytes, pages, message } = progress;
  return [
    countWords(records, 'record'),
    bytesWords(bytes),
    ...(pages === null ? [] : [countWords(pages, 'page')]),
    ...(message === null ? [] : [message]),
  ];
}

/** Says why a job is retried. The text is empty if a stopping server released the job. */
function afterWords({ reason, error }: Job): string {
  if (reason === null && error === null) return '';
  return ` after ${reason ?? 'error'}: ${error ?? ''}`;
}
