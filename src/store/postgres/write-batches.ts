/**
 * Batches of writes: calls of one team that wait at the same moment go into one transaction, and share its commit, the
 * lock under which the team's events are numbered, and statements.
 *
 *     call ──▶ the team's line ──▶ one transaction for all that wait ──▶ results
 *                 │                    ├── what it begins with is locked: this call again, by itself
 *                 │                    └── one failed: each again by itself, so that none fails the others
 *                 └── it is the only one: a transaction of its own
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../../model/error.ts';
import type { Begins, Operation } from '../operation.ts';
import type { Tx } from '../sql.ts';
import { teamOf } from '../team-of.ts';
import { lockCalls } from './lock-calls.ts';
import type { TeamTurns } from './team-turns.ts';
import { committed, performed, type Writing } from './write.ts';

/** Calls in one transaction: of short ones, which run side by side, and of long ones, one after the other. */
const MAX_SHORT = 64;
const MAX_LONG = 8;

/**
 * Transactions of one line at the same time: a second one begins when half of what fits into it waits. With fewer calls
 * two transactions of half the size take longer than one.
 */
const AT_ONCE = 2;

/**
 * After a batch its callers come back, one by one. Without a moment for that the first of them would have a transaction
 * of its own, for whose commit all others wait. In milliseconds.
 */
const GATHER_MS = 2;

interface Call {
  operation: Operation<Tx, unknown, unknown>;
  input: unknown;
  /** Undefined if it has to be alone. */
  begins: Begins | undefined;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** The short calls of a team, or its long ones. */
interface Line {
  name: string;
  teamId: string;
  isLong: boolean;
  /** Oldest first. */
  waiting: Set<Call>;
  running: number;
}

export function writingInBatches(options: Writing & { turns: TeamTurns }) {
  const { turns } = options;
  const lines = new Map<string, Line>();

  return (operation: Call['operation']) =>
    (input: unknown): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const line = lineOf(teamOf(input) ?? '', operation.isLong === true);
        const begins = (operation.begins ?? rowsOf)(input as never);
        line.waiting.add({ operation, input, begins, resolve, reject });
        start(line);
      });

  function lineOf(teamId: string, isLong: boolean): Line {
    const name = `${teamId} ${isLong}`;
    const line = lines.get(name) ?? { name, teamId, isLong, waiting: new Set(), running: 0 };
    lines.set(name, line);
    return line;
  }

  /** Begins a transaction, if one may begin. */
  function start(line: Line): void {
    const { name, teamId, waiting, running } = line;
    if (waiting.size === 0 && running === 0) lines.delete(name);
    const enough = running === 0 ? 1 : sizeOf(line) / 2;
    if (running === AT_ONCE || waiting.size < enough) return;
    line.running += 1;
    turns
      .run(teamId, () => run(line), { ahead: true })
      .then(
        (calls) => (calls > 1 ? pause(GATHER_MS) : undefined),
        (error) => {
          // No place became free: whoever waits for it has waited too long.
          for (const call of waiting) call.reject(error);
          waiting.clear();
        },
      )
      .finally(() => {
        line.running -= 1;
        start(line);
      });
  }

  /** Returns how many calls it was of. */
  async function run(line: Line): Promise<number> {
    const calls = take(line);
    const [first] = calls;
    if (first === undefined) return 0;
    if (calls.length === 1) await alone(first);
    else await together(line, calls);
    return calls.length;
  }

  function alone({ operation, input, resolve, reject }: Call): Promise<void> {
    const perform = (tx: Tx) => performed(tx, operation, input);
    return committed(options, perform, { prepares: !operation.isLong }).then(resolve, reject);
  }

  async function together({ teamId, isLong }: Line, calls: readonly Call[]): Promise<void> {
    let isDone = false;
    const perform = async (tx: Tx) => {
      isDone = false;
      const locked = await lockCalls(
        tx,
        teamId,
        calls.map(({ begins }) => begins ?? {}),
      );
      const one = ({ operation, input }: Call, at: number) => {
        const of = locked[at];
        return of === undefined ? undefined : performed({ ...tx, locked: of }, operation, input);
      };
      const results = isLong ? await inOrder(calls, one) : await Promise.all(calls.map(one));
      isDone = true;
      return { locked, results };
    };
    try {
      const { locked, results } = await committed(options, perform, { prepares: !isLong });
      for (const [at, call] of calls.entries()) {
        if (locked[at] === undefined) apart(teamId, call);
        else call.resolve(results[at]);
      }
    } catch (error) {
      const isUnreachable = error instanceof Problem && error.code === 'database_unavailable';
      for (const call of calls) {
        // When every operation was done, the commit failed: it may have happened, so nothing is repeated.
        if (isDone || isUnreachable) call.reject(error);
        else apart(teamId, call);
      }
    }
  }

  /** Not awaited: the turn of the batch is over, and each call takes a turn of its own. */
  function apart(teamId: string, call: Call): void {
    turns.run(teamId, () => alone(call)).catch(call.reject);
  }
}

function sizeOf({ isLong }: Line): number {
  return isLong ? MAX_LONG : MAX_SHORT;
}

/** The calls of the next transaction: the oldest, and those that wait and can go with it. */
function take(line: Line): Call[] {
  const calls: Call[] = [];
  const taken = new Set<string>();
  for (const call of line.waiting) {
    if (calls.length === sizeOf(line)) break;
    const { begins } = call;
    if (begins === undefined && calls.length > 0) continue;
    const row = begins?.workflowId ?? begins?.jobId;
    if (row !== undefined && taken.has(row)) continue;
    if (row !== undefined) taken.add(row);
    calls.push(call);
    if (begins === undefined) break;
  }
  for (const call of calls) line.waiting.delete(call);
  return calls;
}

/** What a call begins with, by the shape of its input. */
function rowsOf(input: { workflowId?: string; held?: { jobId: string } }): Begins {
  return input.held === undefined ? { workflowId: input.workflowId } : { jobId: input.held.jobId };
}

async function inOrder<Item, Result>(
  items: readonly Item[],
  perform: (item: Item, at: number) => Promise<Result> | undefined,
): Promise<(Result | undefined)[]> {
  const results: (Result | undefined)[] = [];
  for (const [at, item] of items.entries()) results.push(await perform(item, at));
  return results;
}
