/**
 * One batch of write operations: one transaction, one commit, one wait for the disk.
 *
 * An operation that throws is rolled back alone; the others of its batch are committed. The whole batch is refused when
 * the commit fails, or the disk or another process prevents it.
 */
import { FencedError, Problem } from '../../model/error.ts';
import { NO_QUOTAS, type Quotas } from '../../model/quota.ts';
import type { Touched } from '../store.ts';
import { untouched } from '../touched.ts';
import { note } from './audit.ts';
import { type Database, isOutside } from './database.ts';
import { type DiskTrouble, refusalOf, troubleOf } from './disk-trouble.ts';
import { writeSequences } from './events.ts';
import { WRITES, type WriteName } from './operations.ts';
import type { Tx } from './transaction.ts';

/** One write operation. */
export interface Call {
  name: WriteName;
  input: unknown;
}

export interface Batch {
  /** The time of every operation of the batch, in epoch milliseconds. */
  now: number;
  publicUrl: string;
  calls: readonly Call[];
}

/** The outcome of one call, in a form that can be cloned between threads. */
export type Answer = { ok: true; value: unknown } | { ok: false; error: PackedError };

export interface BatchResult {
  /** One for each call, in order. */
  answers: Answer[];
  touched: Touched;
  /** Whether there may be more deliveries of removed webhooks for `deliveries.cancelRemoved` to cancel. */
  cancelMore: boolean;
  /** Set if nothing was written because of the disk. */
  trouble?: DiskTrouble;
}

/** How many deliveries one transaction cancels at most. */
const MAX_CANCELED = 500;

/** Runs a batch and commits it. Never throws: errors are in the answers. */
export function runBatch(db: Database, batch: Batch, quotas: Quotas = NO_QUOTAS): BatchResult {
  const touched = untouched();
  const { now, publicUrl } = batch;
  const tx: Tx = { db, now, publicUrl, quotas, touched, cancelsLeft: MAX_CANCELED, sequences: new Map() };
  try {
    const answers = performTogether(tx, batch.calls) ?? performApart(tx, batch.calls);
    return { answers, touched, cancelMore: tx.cancelsLeft === 0 };
  } catch (error) {
    if (db.inTransaction) db.run('rollback');
    const problem = refusalOf(error);
    const trouble = troubleOf(problem);
    const refusal = packError(problem);
    return {
      answers: batch.calls.map(() => ({ ok: false, error: refusal })),
      touched: untouched(),
      cancelMore: false,
      ...(trouble === undefined ? {} : { trouble }),
    };
  }
}

/** Optimistic: without savepoints; rolls back and returns undefined when an operation throws. */
function performTogether(tx: Tx, calls: readonly Call[]): Answer[] | undefined {
  tx.db.run('begin immediate');
  const answers: Answer[] = [];
  for (const call of calls) {
    const answer = perform(tx, call);
    if (!answer.ok) {
      tx.db.run('rollback');
      tx.sequences.clear();
      // Alone in its batch, it need not run again.
      return calls.length === 1 ? [answer] : undefined;
    }
    answers.push(answer);
  }
  writeSequences(tx);
  tx.db.run('commit');
  return answers;
}

/**
 * Gives each operation a savepoint. Only for batches in which one has thrown, which is rare: expected outcomes are
 * results, not errors. Savepoints for all would cost a fifth of the enqueue throughput.
 */
function performApart(tx: Tx, calls: readonly Call[]): Answer[] {
  tx.db.run('begin immediate');
  tx.cancelsLeft = MAX_CANCELED;
  const answers = calls.map((call) => {
    tx.db.run('savepoint operation');
    const answer = perform(tx, call);
    if (answer.ok) writeSequences(tx);
    else tx.db.run('rollback to operation');
    tx.sequences.clear();
    tx.db.run('release operation');
    return answer;
  });
  tx.db.run('commit');
  return answers;
}

/** Throws only what affects the whole batch. */
function perform(tx: Tx, call: Call): Answer {
  try {
    const operation = WRITES[call.name] as (tx: Tx, input: unknown) => unknown;
    tx.repeated = false;
    const value = operation(tx, call.input);
    note(tx, call.input, value);
    return { ok: true, value };
  } catch (error) {
    if (isOutside(error) || !tx.db.inTransaction) throw error;
    return { ok: false, error: packError(error) };
  }
}

/** An error in a form that can be cloned between threads, where its class would be lost. */
export type PackedError =
  | { kind: 'problem'; code: Problem['code']; sentence: string; headers: Problem['headers']; cause: unknown }
  | { kind: 'fenced'; sentence: string }
  | { kind: 'other'; cause: unknown };

/** The opposite of `unpackError`. */
export function packError(error: unknown): PackedError {
  if (error instanceof Problem) {
    const { code, message, headers, cause } = error;
    return { kind: 'problem', code, sentence: message, headers, cause: cloneable(cause) };
  }
  if (error instanceof FencedError) return { kind: 'fenced', sentence: error.message };
  return { kind: 'other', cause: cloneable(error) };
}

/** The error as it was thrown on the other thread, but with this thread's stack. */
export function unpackError(packed: PackedError): Error {
  if (packed.kind === 'fenced') return new FencedError(packed.sentence);
  if (packed.kind === 'other') return packed.cause as Error;
  const { code, sentence, headers, cause } = packed;
  return new Problem(code, { sentence, headers, ...(cause === undefined ? {} : { cause }) });
}

/** A plain Error with the same message and stack: other values might not be cloneable. */
function cloneable(cause: unknown): unknown {
  if (cause === undefined) return undefined;
  if (!(cause instanceof Error)) return new Error(String(cause));
  const plain = new Error(cause.message);
  if (cause.stack !== undefined) plain.stack = cause.stack;
  return plain;
}
