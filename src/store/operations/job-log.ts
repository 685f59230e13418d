/** What an attempt reports while it runs: its progress, and its log, of which the beginning and the end are kept. */
import type { Held, LogLine } from '../../model/job.ts';
import { BEGINNING, END, type LogAddition, type LogChunk, planLog, toLogLine } from '../job-log-plan.ts';
import type { JobOperations } from '../job-operations.ts';
import type { Tx, View } from '../sql.ts';
import { fenced, heldJob } from './jobs.ts';

/** The size of a row, in bytes: PostgreSQL rewrites the whole row with every line that is added. */
const CHUNK_BYTES = 8_192;
/** How many rows are read at a time. */
const CHUNKS_AT_ONCE = 32;

export async function report(tx: Tx, input: Parameters<JobOperations['report']>[0]): Promise<void> {
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
  await append(tx, held, lines, chunks);
}

function setProgress(
  tx: Tx,
  { teamId, jobId, attempt }: Held,
  progress: NonNullable<Parameters<JobOperations['report']>[0]['progress']>,
): Promise<number> {
  return tx.db.run(
    `update job set progress = $1 where team_id = $2 and id = $3 and attempt = $4 and state = 'running'`,
    JSON.stringify(progress),
    teamId,
    jobId,
    attempt,
  );
}

type StoredChunk = LogChunk & { part: LogAddition['part'] };

async function append(
  tx: Tx,
  held: Held,
  lines: readonly LogLine[],
  chunks: readonly StoredChunk[],
): Promise<void> {
  const of = (part: LogAddition['part']) => chunks.filter((chunk) => chunk.part === part);
  const plan = planLog({ beginning: of(BEGINNING), end: of(END), lines, chunkBytes: CHUNK_BYTES });
  await Promise.all([
    add(tx, held, plan.additions),
    plan.dropBefore > 0 ? deleteEnd(tx, held, plan.dropBefore) : undefined,
  ]);
}

function stored(view: View, { teamId, jobId, attempt }: Held): Promise<StoredChunk[]> {
  return view.db.all<StoredChunk>(
    `select part, seq, last_seq, bytes from job_log
     where team_id = $1 and job_id = $2 and attempt = $3 order by part, seq`,
    teamId,
    jobId,
    attempt,
  );
}

async function add(
  tx: Tx,
  { teamId, jobId, attempt }: Held,
  additions: readonly LogAddition[],
): Promise<void> {
  if (additions.length === 0) return;
  await tx.db.run(
    `insert into job_log (team_id, job_id, attempt, part, seq, last_seq, bytes, body)
     select $1, $2, $3, added.*
     from unnest($4::smallint[], $5::bigint[], $6::bigint[], $7::integer[], $8::text[])
       as added (part, seq, last_seq, bytes, body)
     on conflict (team_id, job_id, attempt, part, seq) do update
     set last_seq = excluded.last_seq, bytes = job_log.bytes + excluded.bytes,
         body = job_log.body || chr(10) || excluded.body`,
    teamId,
    jobId,
    attempt,
    additions.map(({ part }) => part),
    additions.map(({ seq }) => seq),
    additions.map(({ lastSeq }) => lastSeq),
    additions.map(({ bytes }) => bytes),
    additions.map(({ body }) => body),
  );
}

/** Deletes the rows of the end of a log that are before a line. */
async function deleteEnd(tx: Tx, { teamId, jobId, attempt }: Held, before: number): Promise<void> {
  await tx.db.run(
    'delete from job_log where team_id = $1 and job_id = $2 and attempt = $3 and part = $4 and seq < $5',
    teamId,
    jobId,
    attempt,
    END,
    before,
  );
}

export async function log(view: View, input: Parameters<JobOperations['log']>[0]): Promise<LogLine[]> {
  const { teamId, jobId, attempt, afterSeq, limit } = input;
  const lines: LogLine[] = [];
  for (let seq = afterSeq; lines.length < limit; ) {
    const chunks = await view.db.all<{ last_seq: number; body: string }>(
      `select last_seq, body from job_log
       where team_id = $1 and job_id = $2 and attempt = $3 and last_seq > $4 order by part, seq limit $5`,
      teamId,
      jobId,
      attempt,
      seq,
      CHUNKS_AT_ONCE,
    );
    if (chunks.length === 0) break;
    const read = chunks.flatMap(({ body }) => body.split('\n')).map(toLogLine);
    lines.push(...read.filter((line) => line.seq > afterSeq));
    seq = chunks.at(-1)?.last_seq ?? seq;
  }
  return lines.slice(0, limit);
}
