/**
 * Batches of writes: calls of one team that wait for a connection go into one transaction. The sequence numbers of a
 * team's events are assigned by one transaction at a time, from its first event to its commit, so that without batches
 * a team could queue only as many jobs a second as the disk makes commits.
 *
 *     call ──▶ is it the team's turn? ──▶ one transaction for it and all that wait ──▶ results
 *                                            └── failed: each again by itself, so that one cannot fail the others
 */
import { Problem } from '../../model/error.ts';
import type { Tx } from '../sql.ts';
import type { TeamTurns } from './team-turns.ts';
import { committed, type Writing, writing } from './write.ts';

/** Calls in one transaction. */
const MAX_BATCH = 64;

/**
 * Makes an operation whose calls share a transaction with the calls of the same team that are waiting for a connection.
 * Not for operations that are audited: audit lines are made from the input of one call.
 */
export function writingInBatches(options: Writing & { turns: TeamTurns }) {
  const { turns } = options;
  return <Input extends { teamId: string; workflowId: string }, Result>(
    operation: (tx: Tx, input: Input) => Promise<Result>,
  ) => {
    interface Call {
      input: Input;
      resolve(result: Result): void;
      reject(error: unknown): void;
    }
    /** The calls of each team that wait for a turn, oldest first. */
    const waiting = new Map<string, Set<Call>>();
    const alone = writing(options)(operation);

    /** Removes a call from those that wait; false when it is in a batch already. */
    function dequeue(call: Call): boolean {
      const { teamId } = call.input;
      const calls = waiting.get(teamId);
      const waited = calls?.delete(call) === true;
      if (calls?.size === 0) waiting.delete(teamId);
      return waited;
    }

    /**
     * The call and others that wait, one for each workflow, because what a second call finds depends on the first.
     * Sorted, so that two transactions lock the same workflows in the same order.
     */
    function batchOf(call: Call): Call[] {
      const taken = new Map([[call.input.workflowId, call]]);
      for (const other of waiting.get(call.input.teamId) ?? []) {
        if (taken.size === MAX_BATCH) break;
        if (!taken.has(other.input.workflowId)) taken.set(other.input.workflowId, other);
      }
      const calls = [...taken.values()];
      for (const one of calls) dequeue(one);
      return calls.sort((a, b) => (a.input.workflowId < b.input.workflowId ? -1 : 1));
    }

    async function run(call: Call): Promise<void> {
      if (!dequeue(call)) return;
      const calls = batchOf(call);
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
          // When every operation was done, the commit failed: it may have happened, so nothing is repeated.
          if (isDone || isUnreachable || calls.length === 1) one.reject(error);
          // Not awaited: this turn is over, and each call takes a turn of its own.
          else alone(one.input).then(one.resolve, one.reject);
        }
      }
    }

    return (input: Input): Promise<Result> =>
      new Promise((resolve, reject) => {
        const call = { input, resolve, reject };
        const calls = waiting.get(input.teamId) ?? new Set();
        waiting.set(input.teamId, calls.add(call));
        turns
          .run(input.teamId, () => run(call))
          .catch((error) => {
            if (dequeue(call)) reject(error);
          });
      });
  };
}
