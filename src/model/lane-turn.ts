/** Which class of deliveries the next request of a lane goes to. */
import type { DeliveryClass } from './delivery.ts';

/** One in so many requests goes to what is not live, so that it does not starve. */
const LOWER_EVERY = 8;

/**
 * The class that the next request of a lane goes to: live before retry before replay, but each eighth the other way
 * round, in turn to retry and to replay.
 *
 * @param turn counts the requests of the lane, from 0
 * @param waiting how many deliveries of each class are there
 */
export function nextClass(
  turn: number,
  waiting: Readonly<Record<DeliveryClass, number>>,
): DeliveryClass | undefined {
  return orderAt(turn).find((name) => waiting[name] > 0);
}

function orderAt(turn: number): readonly DeliveryClass[] {
  if (turn % LOWER_EVERY !== LOWER_EVERY - 1) return ['live', 'retry', 'replay'];
  const isReplay = turn % (2 * LOWER_EVERY) === 2 * LOWER_EVERY - 1;
  return isReplay ? ['replay', 'retry', 'live'] : ['retry', 'replay', 'live'];
}
