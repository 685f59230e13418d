/** Chooses which of the waiting calls make up the next batch, when they are more than fit into one. */
import { teamOf } from '../team-of.ts';

/**
 * Takes the calls of the next batch out of those that wait. While all of them fit, they are taken as they are. Otherwise
 * teams take turns: one call of each, then a second of each, and so on, so that the calls of a team that asks for little
 * do not wait for all those of another. Calls of no team (claims, settlements) are for all of them, and go first.
 *
 * The calls of a team stay in their order, in the batch as well as across batches.
 */
export function nextBatch<Call extends { input: unknown }>(
  waiting: Call[],
  most: number,
): { batch: Call[]; left: Call[] } {
  if (waiting.length <= most) return { batch: waiting, left: [] };
  const round = roundsOf(waiting);
  const inRound: number[] = [];
  for (const number of round) inRound[number] = (inRound[number] ?? 0) + 1;
  // Whole rounds are taken while they fit, and of the one after them the oldest calls.
  let free = most;
  let whole = 0;
  for (let calls = inRound[0] ?? 0; calls <= free; calls = inRound[whole] ?? 0) {
    free -= calls;
    whole += 1;
  }
  const batch: Call[] = [];
  const left: Call[] = [];
  for (const [at, call] of waiting.entries()) {
    const number = round[at] as number;
    const isTaken = number < whole || (number === whole && free > 0);
    if (number === whole) free -= 1;
    (isTaken ? batch : left).push(call);
  }
  return { batch, left };
}

/** For each call, how many rounds come before its own: calls of its team that are older; 0 for calls of no team. */
function roundsOf(waiting: readonly { input: unknown }[]): number[] {
  const before = new Map<string, number>();
  return waiting.map(({ input }) => {
    const team = teamOf(input);
    if (team === undefined) return 0;
    const round = (before.get(team) ?? 0) + 1;
    before.set(team, round);
    return round;
  });
}
