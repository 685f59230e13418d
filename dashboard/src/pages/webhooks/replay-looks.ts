/** How often a replay is read while somebody watches it. */
import type { Replay } from 'flowhook-client';
import { restMs } from '../../queries/rest.ts';

/** How many readings come soon after one another. Attempts of what is held back may take hours. */
const SOON = 60;
const SOON_MS = 1_000;
const LATER_MS = 5_000;

type Looked = Pick<Replay, 'state'> & { outcome: Pick<Replay['outcome'], 'underWay'> };

/** Whether nothing of it will change any more. */
export function isOver({ state, outcome }: Looked): boolean {
  return state === 'done' && outcome.underWay === 0;
}

/**
 * Milliseconds from the beginning of a reading to the next one; false: there is none.
 *
 * @param input.replay undefined: it was not read yet
 * @param input.tookMs how long the reading took: of 100,000 deliveries it costs the service half a second
 * @param input.looks how often it was read
 */
export function lookAgainMs({
  replay,
  tookMs,
  looks,
}: {
  replay: Looked | undefined;
  tookMs: number;
  looks: number;
}): number | false {
  if (replay !== undefined && isOver(replay)) return false;
  return tookMs + restMs({ tookMs, leastMs: looks < SOON ? SOON_MS : LATER_MS });
}
