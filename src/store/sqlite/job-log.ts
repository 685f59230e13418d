/** What an attempt says while it runs: its progress, and a log of which the beginning and the end are kept. */
import { type Held, type LogLine, logLineBytes } from '../../model/job.ts';
import type { JobOperations } from '../job-operations.ts';
import { heldJob } from './jobs.ts';
import type { Tx, View } from './transaction.ts';

/** Bytes of lines that are kept of the beginning of a log, and at least of its end. */
const PART_BYTES = 1_048_576;
/** A row takes lines until their texts have so many bytes: few rows, and none is long to write again. */
const CHUNK_BYTES = 32_768;
/** Characters that are kept of one line. */
const MAX_LINE = 32_768;

const BEGINNING = 0;
const END = 1;
type Part = typeof BEGINNING | typeof END;

interface Chunk {
  seq: number;
  last_seq: number;
  bytes: number;
}

export function report(tx: Tx, input: Parameters<JobOperations['report']>[0]): void {
  const { held, progress, lines = [], restart = false } = input;
  heldJob(tx, held);
  if (progress !== undefined) {
    tx.db.run(
      'update job set progress = ? where team_id = ? and id = ?',
      JSON.stringify(progress),
      held.teamId,
      held.jobId,
    );
  }
  if (restart) deleteEnd(tx, held, Number.MAX_SAFE_INTEGER);
  if (lines.length > 0) append(tx, held, lines);
}

/** A line that is there already is left alone, so that a report may be sent again when its answer was lost. */
function append(tx: Tx, held: Held, lines: readonly LogLine[]): void {
  const beginning = chunks(tx, held, BEGINNING);
  const end = chunks(tx, held, END);
  const last = end.at(-1) ?? beginning.at(-1);
  const fresh = lines.filter(({ seq }) => seq > (last?.last_seq ?? 0)).map(measure);

  const first = end.length > 0 ? [] : fresh.slice(0, fitting(fresh, PART_BYTES - sum(beginning)));
  const later = fresh.slice(first.length);
  write(tx, held, { part: BEGINNING, last: beginning.at(-1), lines: first });
  if (later.length === 0) return;
  // Of very many only those are written that would not be deleted at once.
  write(tx, held, { part: END, last: end.at(-1), lines: later.slice(endFrom(later)) });
  trimEnd(tx, held);
}

/** A line as it is stored, with the bytes of its text. */
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

/** How many of the first items have no more bytes together than this. */
function fitting(items: readonly { bytes: number }[], room: number): number {
  let bytes = 0;
  const beyond = items.findIndex((item) => {
    bytes += item.bytes;
    return bytes > room;
  });
  return beyond === -1 ? items.length : beyond;
}

/** The place from which on there are as many bytes as are kept of the end of a log. */
function endFrom(items: readonly { bytes: number }[]): number {
  let bytes = 0;
  const place = items.findLastIndex((item) => {
    bytes += item.bytes;
    return bytes >= PART_BYTES;
  });
  return Math.max(0, place);
}

function chunks(view: View, { teamId, jobId, attempt }: Held, part: Part): Chunk[] {
  return view.db.all<Chunk>(
    `select seq, last_seq, bytes from job_log
     where team_id = ? and job_id = ? and attempt = ? and part = ? order by seq`,
    teamId,
    jobId,
    attempt,
    part,
  );
}

/** Adds lines to the last row of a part while it is short, and then to new ones. */
function write(
  tx: Tx,
  held: Held,
  { part, last, lines }: { part: Part; last: Chunk | undefined; lines: readonly Measured[] },
): void {
  let chunk = last;
  let added: Measured[] = [];
  const flush = () => {
    if (added.length > 0) store(tx, held, { part, chunk, lines: added });
    added = [];
    chunk = undefined;
  };
  let bytes = chunk?.bytes ?? 0;
  for (const line of lines) {
    if (bytes > 0 && bytes + line.bytes > CHUNK_BYTES) {
      flush();
      bytes = 0;
    }
    added.push(line);
    bytes += line.bytes;
  }
  flush();
}

function store(
  tx: Tx,
  { teamId, jobId, attempt }: Held,
  { part, chunk, lines }: { part: Part; chunk: Chunk | undefined; lines: readonly Measured[] },
): void {
  const seq = lines[0]?.seq ?? 0;
  const lastSeq = lines.at(-1)?.seq ?? 0;
  const body = lines.map(({ json }) => json).join('\n');
  tx.db.run(
    `insert into job_log (team_id, job_id, attempt, part, seq, last_seq, bytes, body) values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict do update
     set last_seq = excluded.last_seq, bytes = bytes + excluded.bytes, body = body || char(10) || excluded.body`,
    teamId,
    jobId,
    attempt,
    part,
    chunk?.seq ?? seq,
    lastSeq,
    sum(lines),
    body,
  );
}

/** Deletes about as much of the end's beginning as was added behind it. */
function trimEnd(tx: Tx, held: Held): void {
  const end = chunks(tx, held, END);
  deleteEnd(tx, held, end[endFrom(end)]?.seq ?? 0);
}

/** Deletes what the end of a log has before a line. */
function deleteEnd(tx: Tx, { teamId, jobId, attempt }: Held, before: number): void {
  tx.db.run(
    'delete from job_log where team_id = ? and job_id = ? and attempt = ? and part = ? and seq < ?',
    teamId,
    jobId,
    attempt,
    END,
    before,
  );
}

export function log(view: View, input: Parameters<JobOperations['log']>[0]): LogLine[] {
  const { teamId, jobId, attempt, afterSeq, limit } = input;
  const lines: LogLine[] = [];
  let seq = afterSeq;
  while (lines.length < limit) {
    const chunk = view.db.get<{ last_seq: number; body: string }>(
      `select last_seq, body from job_log
       where team_id = ? and job_id = ? and attempt = ? and last_seq > ? order by part, seq limit 1`,
      teamId,
      jobId,
      attempt,
      seq,
    );
    if (chunk === undefined) break;
    const read = chunk.body.split('\n').map(toLine);
    lines.push(...read.filter((line) => line.seq > afterSeq));
    seq = chunk.last_seq;
  }
  return lines.slice(0, limit);
}

function toLine(json: string): LogLine {
  const [seq, at, level, text] = JSON.parse(json) as [number, number, LogLine['level'], string];
  return { seq, at, level, text };
}
