/** Turns of the event loop for steps of work that hold it up: one step in each, and teams take turns. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairPlaces } from './fair-places.ts';

const steps = new FairPlaces({ places: 1 });

/**
 * Resolves in a turn of its own. `setImmediate` alone runs the steps of all callers in one turn: sixty searches at once
 * would keep everybody else waiting for sixty steps instead of one. One line for all callers would keep a team's one
 * search waiting for a step of each search of another team, for each of its own steps.
 */
export async function ownTurn(team: string): Promise<void> {
  const leave = await steps.take(team);
  await nextTurn();
  leave();
}
