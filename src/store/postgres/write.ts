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
