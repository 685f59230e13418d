/**
 * Runs operations that write. Each runs in a transaction, which is retried after a deadlock or a serialization failure.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import { fullJitterMs } from '../../std/backoff.ts';
import type { Clock } from '../../std/clock.ts';
import { FairPlaces, NoPlaceError } from '../../std/fair-share.ts';
import { note } from '../audited.ts';
import { type Operation, teamOf } from '../operation.ts';
import { writeEvents } from '../operations/events.ts';
import { writeJobs } from '../operations/jobs.ts';
import type { JobRow } from '../rows.ts';
import { type Tx, untouched } from '../transaction.ts';
import type { Limits } from './connections.ts';
import { inTransaction } from './database.ts';
import { isBusy, isFull, isOutside, isTransient } from './failures.ts';

const MAX_TRIES = 8;
const PAUSE = { baseMs: 10, maxMs: 1_000 };

export interface Writing {
  pool: pg.Pool;
  now: Clock;
  publicUrl: () => string;
  quotas: Quotas;
  /** Called after every commit that touched something. */
  onTouched: (tx: Pick<Tx, 'touched' | 'keysChanged'>) => void;
  /** Gives teams turns at the connections. Undefined for pools that teams do not compete for. */
  turns: TeamTurns | undefined;
}

/**
 * Makes an operation that resolves after its commit. If the database fails, the operation rejects with a Problem. Its
 * transaction may still have been committed, as with every database behind a network.
 */
export function writing(options: Writing) {
  const { turns } = options;
  return <Input, Result>(operation: Operation<Tx, Input, Result>) =>
    (input: Input): Promise<Result> => {
      const call = () => committed(options, (tx) => performed(tx, operation, input), operation);
      return turns === undefined ? call() : turns.run(teamOf(input), call);
    };
}

/** Runs one call in a transaction that also writes its audit lines. */
export async function performed<Input, Result>(
  tx: Tx,
  { run }: Operation<Tx, Input, Result>,
  input: Input,
): Promise<Result> {
  const result = await run(tx, input);
  await note(tx, input, result);
  return result;
}

/** Runs one transaction. Retries it until it has run 8 times, and resolves after the commit. */
export async function committed<Result>(
  { pool, now, publicUrl, quotas, onTouched }: Writing,
  perform: (tx: Tx) => Promise<Result>,
  limits: Limits = {},
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    const jobs: JobRow[] = [];
    const shared = {
      publicUrl: publicUrl(),
      quotas,
      touched: untouched(),
      events: [],
      dues: new Map(),
      jobs,
    };
    let tx: Tx | undefined;
    try {
      const result = await inTransaction(
        pool,
        async (db) => {
          // The clock is read once there is a connection, because `claim-bounds.ts` limits the time from this reading
          // to the commit.
          tx = { ...shared, db, now: now() };
          const made = await perform(tx);
          await Promise.all([writeJobs(tx, jobs), writeEvents(tx)]);
          return made;
        },
        limits,
      );
      if (tx !== undefined && Object.values(shared.touched).includes(true)) onTouched(tx);
      return result;
    } catch (error) {
      if (!isTransient(error) || tries >= MAX_TRIES) throw asProblem(error);
    }
    await pause(fullJitterMs({ failures: tries, ...PAUSE, random: Math.random() }));
  }
}

/** Turns a failure of the database into a Problem; returns any other error unchanged. */
export function asProblem(error: unknown): unknown {
  if (error instanceof Problem || !isOutside(error)) return error;
  if (isFull(error)) {
    return new Problem('disk_full', {
      sentence:
        'The disk of the database server is full: reads work, writes fail. ' +
        'The operator must free or add space; writes then resume automatically',
      cause: error,
    });
  }
  return new Problem(isBusy(error) ? 'database_busy' : 'database_unavailable', { cause: error });
}

/**
 * Maximum time that a call waits for its team's turn before it is refused. The limit for getting a connection is
 * shorter, because no more calls have a turn than there are connections.
 */
const WAIT_MS = 10_000;

/**
 * Gives teams turns at the connections of the pool. While rows of a team are locked, each call of that team waits and
 * occupies a connection. Without turns, calls of other teams would find no free connection.
 */
export class TeamTurns {
  readonly #places: FairPlaces;

  /** @param connections the size of the pool */
  constructor(connections: number) {
    this.#places = new FairPlaces({ places: connections, patienceMs: WAIT_MS });
  }

  /** Runs a call in its team's turn. A call without a team runs immediately. @throws Problem `database_busy` */
  async run<Result>(
    teamId: string | undefined,
    call: () => Promise<Result>,
    options: { ahead?: boolean } = {},
  ): Promise<Result> {
    if (teamId === undefined) return call();
    const leave = await this.#places.take(teamId, options).catch((error: unknown) => {
      throw error instanceof NoPlaceError ? new Problem('database_busy', { cause: error }) : error;
    });
    try {
      return await call();
    } finally {
      leave();
    }
  }
}
