/** Turns of the event loop for steps of work that hold it up: one step in each, whoever it is for. */
import { setImmediate as nextTurn } from 'node:timers/promises';

let last: Promise<void> = Promise.resolve();

/**
 * Resolves in a turn of its own. `setImmediate` alone runs the steps of all callers in one turn: sixty searches at once
 * would keep everybody else waiting for sixty steps instead of one.
 */
export function ownTurn(): Promise<void> {
  last = last.then(() => nextTurn());
  return last;
}
