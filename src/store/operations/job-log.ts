/**
 * What an attempt reports while it runs: its progress and its log. The log has two parts, its beginning and its end;
 * lines in between are dropped. Each stored row contains several lines.
 */

import type { Progress } from '../../model/job.ts';
import { type AttemptLease, type LogLine, logLineBytes } from '../../model/job.ts';
import { type ColumnType, insertAll } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { fenced, heldJob } from './jobs.ts';

/** Target size of a row, in bytes. Rows are small, because adding a line rewrites the whole row. */
const CHUNK_BYTES = 8_192;
/** Rows read at a time. */
const CHUNKS_AT_ONCE = 32;
/** Bytes of lines that the beginning part of a log keeps. The end part keeps at least as many. */
const PART_BYTES = 1_048_576;
/** Characters kept of one line. */
const MAX_LINE = 32_768;

const BEGINNING = 0;
const END = 1;

/**
 * Stores the progress of an attempt, and appends lines to its log, which keeps its first and last MiB. With `restart`,
 * the new lines replace everything after the first MiB.
 */
export async function report(
  tx: Tx,
  input: { held: AttemptLease; progress?: Progress; lines?: readonly LogLine[]; restart?: boolean },
): Promise<void> {
  const { held, progress, lines = [], restart = false } = input;
  if (lines.length === 0 && !restart) {
    if (progress === undefined) await heldJob(tx, held);
    else if ((await setProgress(tx, held, progress)) === 0) throw fenced(held);
    return;
  }
  const [, , , chunks] = await Promise.all([
    heldJob(tx, held),
    progress === undefined ? 0 : setProgress(tx, held, progress),
    restart ? deleteEnd(tx, held, Number.MAX_SAFE_INTEGER) : undefined,
    lines.length === 0 ? [] : stored(tx, held),
  ]);
  await append(tx, held, chunks, lines);
}

/**
 * Appends lines to the log of an attempt.
 *
 * @param chunks the rows that the log has, read after the job was locked
 */
export async function append(
  tx: Tx,
  held: AttemptLease,
  chunks: readonly Chunk[],
  lines: readonly LogLine[],
): Promise<void> {
  if (lines.length === 0) return;
  const { additions, dropBefore } = plan(chunks, lines);
  await Promise.all([add(tx, held, additions), dropBefore > 0 ? deleteEnd(tx, held, dropBefore) : undefined]);
}

export function setProgress(
  tx: Tx,
  { teamId, jobId, attempt }: AttemptLease,
  progress: Progress,
): Promise<number> {
  return tx.db.run`
    update job set progress = ${JSON.stringify(progress)} where team_id = ${teamId} and id = ${jobId}
      and attempt = ${attempt} and state = 'running'`;
}

export function stored(view: View, { teamId, jobId, attempt }: AttemptLease): Promise<Chunk[]> {
  return view.db.all<Chunk>`
    select part, seq, last_seq, bytes from job_log
    where team_id = ${teamId} and job_id = ${jobId} and attempt = ${attempt} order by part, seq`;
}

const COLUMNS = {
  team_id: 'text',
  job_id: 'text',
  attempt: 'integer',
  part: 'integer',
  seq: 'bigint',
  last_seq: 'bigint',
  bytes: 'integer',
  body: 'text',
} satisfies Record<string, ColumnType>;
const APPEND = `
  on conflict (team_id, job_id, attempt, part, seq) do update
  set last_seq = excluded.last_seq, bytes = job_log.bytes + excluded.bytes,
      body = job_log.body || '\n' || excluded.body`;

function add(
  tx: Tx,
  { teamId, jobId, attempt }: AttemptLease,
  additions: readonly Addition[],
): Promise<void> {
  const rows = additions.map(({ part, seq, lastSeq, bytes, body }) => {
    return [teamId, jobId, attempt, part, seq, lastSeq, bytes, body];
  });
  return insertAll(tx.db, 'job_log', COLUMNS, rows, APPEND);
}

/** Deletes the rows of a log's end part that start before the line `before`. */
async function deleteEnd(tx: Tx, { teamId, jobId, attempt }: AttemptLease, before: number): Promise<void> {
  await tx.db.run`
    delete from job_log where team_id = ${teamId} and job_id = ${jobId} and attempt = ${attempt}
      and part = ${END} and seq < ${before}`;
}

/** Returns lines of an attempt's log after line `afterSeq`, in order; empty if there are no such lines yet. */
export async function log(
  view: View,
  input: { teamId: string; jobId: string; attempt: number; afterSeq: number; limit: number },
): Promise<LogLine[]> {
  const { teamId, jobId, attempt, afterSeq, limit } = input;
  const lines: LogLine[] = [];
  for (let seq = afterSeq; lines.length < limit; ) {
    const chunks = await view.db.all<{ last_seq: number; body: string }>`
      select last_seq, body from job_log
      where team_id = ${teamId} and job_id = ${jobId} and attempt = ${attempt} and last_seq > ${seq}
      order by part, seq limit ${CHUNKS_AT_ONCE}`;
    if (chunks.length === 0) break;
    const read = chunks.flatMap(({ body }) => body.split('\n')).map(toLogLine);
    lines.push(...read.filter((line) => line.seq > afterSeq));
    seq = chunks.at(-1)?.last_seq ?? seq;
  }
  return lines.slice(0, limit);
}

function toLogLine(json: string): LogLine {
  const [seq, at, level, text] = JSON.parse(json) as [number, number, LogLine['level'], string];
  return { seq, at, level, text };
}

/** A stored row, without its lines: the numbers of its first and last line, and the size of its texts in bytes. */
interface Chunk {
  part: Addition['part'];
  seq: number;
  last_seq: number;
  bytes: number;
}

/** Lines to append to the row that starts at `seq`, in one part of a log. The row is created if it does not exist. */
interface Addition {
  part: typeof BEGINNING | typeof END;
  seq: number;
  lastSeq: number;
  bytes: number;
  /** One JSON array per line of the log: [seq, at, level, text]. */
  body: string;
}

/**
 * Plans which lines to add. Afterwards, rows of the end part that start before the line `dropBefore` are deleted; 0
 * means that none are. Lines that are already stored are skipped, so that a report whose result was lost can be
 * repeated.
 */
function plan(
  chunks: readonly Chunk[],
  lines: readonly LogLine[],
): { additions: Addition[]; dropBefore: number } {
  const beginning = chunks.filter(({ part }) => part === BEGINNING);
  const end = chunks.filter(({ part }) => part === END);
  const fresh = lines.filter(({ seq }) => seq > (chunks.at(-1)?.last_seq ?? 0)).map(measure);

  const first = end.length > 0 ? [] : fresh.slice(0, fitting(fresh, PART_BYTES - sum(beginning)));
  const later = fresh.slice(first.length);
  // Lines that would be deleted again immediately are skipped.
  const kept = later.slice(endFrom(later));
  const toEnd = additions(END, end.at(-1), kept);
  return {
    additions: [...additions(BEGINNING, beginning.at(-1), first), ...toEnd],
    dropBefore: toEnd.length === 0 ? 0 : dropBefore(end, toEnd),
  };
}

/** A line in its stored form, with its size. */
interface Measured {
  seq: number;
  json: string;
  bytes: number;
}

function measure({ seq, at, level, text }: LogLine): Measured {
  const kept = text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text;
  return { seq, json: JSON.stringify([seq, at, level, kept]), bytes: logLineBytes(kept) };
}

function sum(items: readonly { bytes: number }[]): number {
  return items.reduce((bytes, item) => bytes + item.bytes, 0);
}

/** Returns how many items, counted from the first, fit into `room` bytes. */
function fitting(items: readonly { bytes: number }[], room: number): number {
  let bytes = 0;
  const beyond = items.findIndex((item) => {
    bytes += item.bytes;
    return bytes > room;
  });
  return beyond === -1 ? items.length : beyond;
}

/** Returns the index of the first of those last items that together fill the end part of a log. */
function endFrom(items: readonly { bytes: number }[]): number {
  let bytes = 0;
  const place = items.findLastIndex((item) => {
    bytes += item.bytes;
    return bytes >= PART_BYTES;
  });
  return Math.max(0, place);
}

/** Adds lines to the last row of a part until that row is full, and then to new rows. */
function additions(part: Addition['part'], last: Chunk | undefined, lines: readonly Measured[]): Addition[] {
  const added: Addition[] = [];
  let bytes = last?.bytes ?? 0;
  for (const line of lines) {
    const row = added.at(-1);
    const isFull = bytes > 0 && bytes + line.bytes > CHUNK_BYTES;
    if (isFull) bytes = 0;
    bytes += line.bytes;
    if (row === undefined || isFull) {
      const seq = row === undefined && !isFull && last !== undefined ? last.seq : line.seq;
      added.push({ part, seq, lastSeq: line.seq, bytes: line.bytes, body: line.json });
      continue;
    }
    row.lastSeq = line.seq;
    row.bytes += line.bytes;
    row.body += `\n${line.json}`;
  }
  return added;
}

/** Returns the line before which rows of the end part are deleted, so that the part keeps about 1 MiB. */
function dropBefore(end: readonly Chunk[], added: readonly Addition[]): number {
  const sizes = new Map(end.map(({ seq, bytes }) => [seq, bytes]));
  for (const { seq, bytes } of added) sizes.set(seq, (sizes.get(seq) ?? 0) + bytes);
  const rows = [...sizes].map(([seq, bytes]) => ({ seq, bytes }));
  return rows[endFrom(rows)]?.seq ?? 0;
}
