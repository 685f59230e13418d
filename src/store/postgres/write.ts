/** Runs operations that write: one transaction each, tried again when the database took it back for another one. */
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import { fullJitterMs } from '../../std/backoff.ts';
import type { Clock } from '../../std/clock.ts';
import { untouched } from '../touched.ts';
import { note } from './audit.ts';
import { inTransaction, isBusy, isFull, isOutside, isTransient } from './database.ts';
import { type TeamShares, teamOf } from './team-shares.ts';
import type { Tx } from './transaction.ts';

const MAX_TRIES = 8;
const PAUSE = { baseMs: 10, maxMs: 1_000 };

export interface Writing {
  pool: pg.Pool;
  now: Clock;
  publicUrl: () => string;
  quotas: Quotas;
  /** Called after every commit that touched something. */
  onTouched: (tx: Pick<Tx, 'touched' | 'keysChanged'>) => void;
  /** How much of the pool one team may hold, where others wait for it. */
  shares: TeamShares | undefined;
}

/**
 * Makes an operation that answers after its commit. What is wrong outside is a Problem; then nobody here knows
 * whether it was committed, as with every database that is reached over a wire.
 */
export function writing(options: Writing) {
  const { shares } = options;
  return <Input, Result>(operation: (tx: Tx, input: Input) => Promise<Result>) =>
    (input: Input): Promise<Result> => {
      const call = () => committed(options, operation, input);
      return shares === undefined ? call() : shares.run(teamOf(input), call);
    };
}

/** Calls that one transaction takes at most. */
const MAX_TOGETHER = 64;

/**
 * Makes an operation whose calls go into one transaction with those of the same team that wait for a connection. The
 * numbers of a team's events are given by one transaction after the other, each from its first event to its commit:
 * alone, a team would queue as many jobs a second as the disk makes commits. For nothing that stands in the audit, whose
 * lines are made of one call's input.
 *
 *     call ──▶ is it the team's turn? ──▶ one transaction for it and all that wait ──▶ answers
 *                                            └── refused: each by itself, so that one in the way costs only itself
 */
export function writingTogether(options: Writing & { shares: TeamShares }) {
  const { shares } = options;
  return <Input extends { teamId: string; workflowId: string }, Result>(
    operation: (tx: Tx, input: Input) => Promise<Result>,
  ) => {
    interface Call {
      input: Input;
      resolve(result: Result): void;
      reject(error: unknown): void;
    }
    /** Who waits for a turn, by the team, in the order in which they came. */
    const waiting = new Map<string, Set<Call>>();
    const alone = writing(options)(operation);

    /** Takes a call out of those that wait; false when another one has taken it along. */
    function leave(call: Call): boolean {
      const { teamId } = call.input;
      const calls = waiting.get(teamId);
      const waited = calls?.delete(call) === true;
      if (calls?.size === 0) waiting.delete(teamId);
      return waited;
    }

    /**
     * One for each workflow, for what is said of a second one rests on the first. Sorted, so that two transactions
     * that lock the same workflows do so in one order.
     */
    function takeAlong(call: Call): Call[] {
      const taken = new Map([[call.input.workflowId, call]]);
      for (const other of waiting.get(call.input.teamId) ?? []) {
        if (taken.size === MAX_TOGETHER) break;
        if (!taken.has(other.input.workflowId)) taken.set(other.input.workflowId, other);
      }
      const calls = [...taken.values()];
      for (const one of calls) leave(one);
      return calls.sort((a, b) => (a.input.workflowId < b.input.workflowId ? -1 : 1));
    }

    async function run(call: Call): Promise<void> {
      if (!leave(call)) return;
      const calls = takeAlong(call);
      let isDone = false;
      const all = async (tx: Tx) => {
        isDone = false;
        const results = await Promise.all(calls.map(({ input }) => operation(tx, input)));
        isDone = true;
        return results;
      };
      try {
        const results = await committed(options, all, calls);
        for (const [at, one] of calls.entries()) one.resolve(results[at] as Result);
      } catch (error) {
        const isUnreachable = error instanceof Problem && error.code === 'database_unavailable';
        for (const one of calls) {
          // Once all is done there is only the commit: what may have been committed must not be done again.
          if (isDone || isUnreachable || calls.length === 1) one.reject(error);
          // Not waited for: its turn is another one than this.
          else alone(one.input).then(one.resolve, one.reject);
        }
      }
    }

    return (input: Input): Promise<Result> =>
      new Promise((resolve, reject) => {
        const call = { input, resolve, reject };
        const calls = waiting.get(input.teamId) ?? new Set();
        waiting.set(input.teamId, calls.add(call));
        shares
          .run(input.teamId, () => run(call))
          .catch((error) => {
            if (leave(call)) reject(error);
          });
      });
  };
}

async function committed<Input, Result>(
  { pool, now, publicUrl, quotas, onTouched }: Writing,
  operation: (tx: Tx, input: Input) => Promise<Result>,
  input: Input,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    const told = { publicUrl: publicUrl(), quotas, touched: untouched(), sequences: new Map() };
    let tx: Tx | undefined;
    try {
      const result = await inTransaction(pool, async (db) => {
        // Not before there is a connection: how long it takes to the commit is reckoned with.
        tx = { ...told, db, now: now() };
        const made = await operation(tx, input);
        await note(tx, input, made);
        return made;
      });
      if (tx !== undefined && Object.values(told.touched).includes(true)) onTouched(tx);
      return result;
    } catch (error) {
      if (!isTransient(error) || tries >= MAX_TRIES) throw asProblem(error);
    }
    await pause(fullJitterMs({ failures: tries, ...PAUSE, random: Math.random() }));
  }
}

/** What is wrong outside as a Problem; everything else as it is. */
export function asProblem(error: unknown): unknown {
  if (error instanceof Problem || !isOutside(error)) return error;
  if (isFull(error)) {
    return new Problem('disk_full', {
      sentence:
        'The disk of the database server is full: nothing can be written, and reads go on. The operator has to free space there; writing then goes on by itself',
      cause: error,
    });
  }
  return new Problem(isBusy(error) ? 'database_busy' : 'database_unavailable', { cause: error });
}
