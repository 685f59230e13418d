/** What a replay does about a delivery that it has come to: the same for both drivers. */
import type { DeliveryState } from '../model/delivery.ts';

/** A delivery of the event in question to the webhook in question. */
export interface Sibling {
  id: string;
  state: DeliveryState;
  createdAt: number;
  replayId: string | null;
}

/** `copy`: send the event in a new delivery; `due`: make the delivery that still waits due now; null: neither. */
export type Choice = { copy: true } | { due: string } | null;

/**
 * An event that still waits is never sent in a second delivery, and what failed and has arrived since is not sent again.
 *
 * @param siblings all deliveries of the event to the webhook, with the selected one
 * @param states those that the replay selects
 * @param replayId null while it is only counted
 */
export function chooseReplay(
  selected: Sibling,
  siblings: readonly Sibling[],
  { states, replayId }: { states: readonly DeliveryState[]; replayId: string | null },
): Choice {
  if (replayId !== null && siblings.some((one) => one.replayId === replayId)) return null;
  const waiting = firstWaiting(siblings);
  if (waiting !== undefined) return states.includes('waiting') ? { due: waiting.id } : null;
  const isMadeGood = siblings.some(
    ({ state, createdAt }) => state === 'delivered' && createdAt >= selected.createdAt,
  );
  return selected.state !== 'delivered' && isMadeGood ? null : { copy: true };
}

/** The oldest that still waits: it is the one to make due. */
export function firstWaiting<One extends Sibling>(siblings: readonly One[]): One | undefined {
  return siblings
    .filter(({ state }) => state === 'waiting')
    .reduce<One | undefined>(
      (first, one) => (first === undefined || one.createdAt < first.createdAt ? one : first),
      undefined,
    );
}
