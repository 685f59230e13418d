/** What an attempt reports while it runs: its progress, and a log of which the beginning and the end are kept. */
import type { Held, LogLine } from '../../model/job.ts';
import { BEGINNING, END, type LogAddition, type LogChunk, planLog, toLogLine } from '../job-log-plan.ts';
import type { JobOperations } from '../job-operations.ts';
import { heldJob } from './jobs.ts';
import type { Tx, View } from './transaction.ts';

/** Bytes of lines per row: large enough for few rows, small enough to rewrite one with every report. */
const CHUNK_BYTES = 32_768;

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

function append(tx: Tx, held: Held, lines: readonly LogLine[]): void {
  const beginning = chunks(tx, held, BEGINNING);
  const end = chunks(tx, held, END);
  const plan = planLog({ beginning, end, lines, chunkBytes: CHUNK_BYTES });
  for (const addition of plan.additions) add(tx, held, addition);
  if (plan.dropBefore > 0) deleteEnd(tx, held, plan.dropBefore);
}

function chunks(view: View, { teamId, jobId, attempt }: Held, part: LogAddition['part']): LogChunk[] {
  return view.db.all<LogChunk>(
    `select seq, last_seq, bytes from job_log
     where team_id = ? and job_id = ? and attempt = ? and part = ? order by seq`,
    teamId,
    jobId,
    attempt,
    part,
  );
}

function add(tx: Tx, { teamId, jobId, attempt }: Held, addition: LogAddition): void {
  tx.db.run(
    `insert into job_log (team_id, job_id, attempt, part, seq, last_seq, bytes, body) values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict do update
     set last_seq = excluded.last_seq, bytes = bytes + excluded.bytes, body = body || char(10) || excluded.body`,
    teamId,
    jobId,
    attempt,
    addition.part,
    addition.seq,
    addition.lastSeq,
    addition.bytes,
    addition.body,
  );
}

/** Deletes the rows of the end of a log that begin before a line. */
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
    const read = chunk.body.split('\n').map(toLogLine);
    lines.push(...read.filter((line) => line.seq > afterSeq));
    seq = chunk.last_seq;
  }
  return lines.slice(0, limit);
}
