/**
 * Runs one batch of write operations in one transaction, with one commit and one disk flush.
 *
 * An operation that throws is rolled back alone, and the rest of the batch is committed. The whole batch fails only if
 * the commit fails, or if the disk or another process prevents the transaction.
 */

import { FencedError, Problem } from '../../model/error.ts';
import { NO_QUOTAS, type Quotas } from '../../model/quota.ts';
import { note } from '../audited.ts';
import { read, write } from '../operation.ts';
import { writeEvents } from '../operations/events.ts';
import { laneNames } from '../operations/lanes.ts';
import { OPERATIONS } from '../operations/table.ts';
import { MAX_CANCELED } from '../operations/webhooks.ts';
import { type Touched, type Tx, untouched } from '../transaction.ts';
import { beat, claim, nextDueAt } from './claim.ts';
import { type Database, isOutside } from './database.ts';
import { type DiskTrouble, refusalOf, troubleOf } from './disk-trouble.ts';
import { dueLanes, dueTeams, lane, load } from './lanes.ts';
import { SqliteSql } from './sql.ts';

/** The operations of this driver: those that both drivers share, and those that SQLite implements itself. */
export const SQLITE_OPERATIONS = {
  ...OPERATIONS,
  jobs: { ...OPERATIONS.jobs, claim: write(claim), beat: write(beat), nextDueAt: read(nextDueAt) },
  deliveries: { ...OPERATIONS.deliveries, load: read(load) },
  lanes: {
    ...OPERATIONS.lanes,
    teams: read(dueTeams),
    names: read(laneNames),
    due: read(dueLanes),
    one: read(lane),
  },
};

/** The name of an operation, for example `keys.create`. */
export type WriteName = {
  [Group in keyof typeof SQLITE_OPERATIONS]: `${Group}.${string & keyof (typeof SQLITE_OPERATIONS)[Group]}`;
}[keyof typeof SQLITE_OPERATIONS];

/** Every operation that writes, by its name: the calls that the writer thread accepts. */
export const WRITES: ReadonlyMap<string, (tx: Tx, input: never) => Promise<unknown>> = new Map(
  Object.entries(SQLITE_OPERATIONS).flatMap(([group, operations]) =>
    Object.entries(operations)
      .filter(([, { kind }]) => kind !== 'read')
      .map(([name, { run }]) => [`${group}.${name}`, run] as const),
  ),
);

/** Maximum number of operations in a transaction. */
export const MAX_CALLS = 512;

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

/** The result of one call, in a form that can be cloned between threads. */
export type CallResult = { ok: true; value: unknown } | { ok: false; error: PackedError };

export interface BatchResult {
  /** One for each call, in order. */
  results: CallResult[];
  touched: Touched;
  /** Set if the state of the disk prevented the whole batch from being written. */
  trouble?: DiskTrouble;
}

/**
 * Runs a batch and commits it. Never rejects, because errors are part of the results. Await one batch before the next.
 */
export async function runBatch(db: Database, batch: Batch, quotas: Quotas = NO_QUOTAS): Promise<BatchResult> {
  const { now, publicUrl, calls } = batch;
  const touched = untouched();
  const shared = { now, publicUrl, quotas, touched };
  try {
    const results = (await performTogether(db, shared, calls)) ?? (await performApart(db, shared, calls));
    return { results, touched };
  } catch (error) {
    if (db.inTransaction) db.run('rollback');
    const problem = refusalOf(error);
    const trouble = troubleOf(problem);
    const refusal = packError(problem);
    return {
      results: calls.map(() => ({ ok: false, error: refusal })),
      touched: untouched(),
      ...(trouble === undefined ? {} : { trouble }),
    };
  }
}

type Shared = Pick<Tx, 'now' | 'publicUrl' | 'quotas' | 'touched'>;

/** Runs all operations without savepoints. If one throws, rolls back all of them and returns undefined. */
async function performTogether(
  db: Database,
  shared: Shared,
  calls: readonly Call[],
): Promise<CallResult[] | undefined> {
  db.run('begin immediate');
  const sql = new SqliteSql(db, { inTransaction: true });
  const events: Tx['events'] = [];
  const dues: Tx['dues'] = new Map();
  const cancels = { left: MAX_CANCELED };
  const results: CallResult[] = [];
  try {
    for (const call of calls) {
      const isLast = call === calls.at(-1);
      const result = await perform(
        { ...shared, db: sql, events, dues, cancels },
        call,
        db,
        isLast ? writeEvents : undefined,
      );
      if (!result.ok) {
        db.run('rollback');
        // The result is known if the batch has a single call. Otherwise the calls run again, in savepoints.
        return calls.length === 1 ? [result] : undefined;
      }
      results.push(result);
    }
    db.run('commit');
    return results;
  } finally {
    sql.end();
  }
}

/**
 * Runs each operation in a savepoint. This is used only for batches in which an operation has thrown. Such batches are
 * rare, because expected outcomes are results, not errors. Savepoints in all batches would cost a fifth of the
 * throughput of queueing jobs.
 */
async function performApart(db: Database, shared: Shared, calls: readonly Call[]): Promise<CallResult[]> {
  db.run('begin immediate');
  const cancels = { left: MAX_CANCELED };
  const results: CallResult[] = [];
  for (const call of calls) {
    db.run('savepoint operation');
    const sql = new SqliteSql(db, { inTransaction: true });
    const tx: Tx = { ...shared, db: sql, events: [], dues: new Map(), cancels };
    const result = await perform(tx, call, db, writeEvents).finally(() => sql.end());
    if (!result.ok) db.run('rollback to operation');
    db.run('release operation');
    results.push(result);
  }
  db.run('commit');
  return results;
}

/** This rejects only with an error that affects the whole batch. */
async function perform(
  tx: Tx,
  call: Call,
  db: Database,
  finish?: (tx: Tx) => Promise<void>,
): Promise<CallResult> {
  try {
    const operation = WRITES.get(call.name) as (tx: Tx, input: unknown) => Promise<unknown>;
    const value = await operation(tx, call.input);
    await note(tx, call.input, value);
    await finish?.(tx);
    return { ok: true, value };
  } catch (error) {
    if (isOutside(error) || !db.inTransaction) throw error;
    return { ok: false, error: packError(error) };
  }
}

/** An error in a form that can be cloned between threads. Cloning the error itself would lose its class. */
export type PackedError =
  | { kind: 'problem'; code: Problem['code']; sentence: string; headers: Problem['headers']; cause: unknown }
  | { kind: 'fenced'; sentence: string }
  | { kind: 'other'; cause: unknown };

export function packError(error: unknown): PackedError {
  if (error instanceof Problem) {
    const { code, message, headers, cause } = error;
    return { kind: 'problem', code, sentence: message, headers, cause: cloneable(cause) };
  }
  if (error instanceof FencedError) return { kind: 'fenced', sentence: error.message };
  return { kind: 'other', cause: cloneable(error) };
}

/** Restores the error that the other thread threw, with the stack of this thread. */
export function unpackError(packed: PackedError): Error {
  if (packed.kind === 'fenced') return new FencedError(packed.sentence);
  if (packed.kind === 'other') return packed.cause as Error;
  const { code, sentence, headers, cause } = packed;
  return new Problem(code, { sentence, headers, ...(cause === undefined ? {} : { cause }) });
}

/** Returns a plain Error with the same message and stack, because other values may not be cloneable. */
function cloneable(cause: unknown): unknown {
  if (cause === undefined) return undefined;
  if (!(cause instanceof Error)) return new Error(String(cause));
  const plain = new Error(cause.message);
  if (cause.stack !== undefined) plain.stack = cause.stack;
  return plain;
}
