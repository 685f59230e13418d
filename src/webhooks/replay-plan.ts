/** What a replay would send, counted before it begins. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DELIVERY_STATES, type DeliveryState } from '../model/delivery.ts';
import type { HistoryPlace } from '../store/operations/deliveries.ts';
import type { Store } from '../store/store.ts';

/** Read at once: a few milliseconds on SQLite, whose reads hold the event loop. */
const PART = 500;
/** Deliveries looked at per count, so that counting never takes long. */
const MAX_LOOKED_AT = 50_000;

export interface ReplayPlan {
  /** Epoch milliseconds, both inclusive. */
  since: number;
  until: number;
  states: DeliveryState[];
  /** Events that it would send. */
  count: number;
  /** In which state each of them is; of states that are not chosen, how many more it would send if they were. */
  byState: Record<DeliveryState, number>;
  /** False if there are more than are counted. */
  isComplete: boolean;
}

interface ReplaySelection {
  teamId: string;
  webhookId: string;
  states: readonly DeliveryState[];
  since: number;
  until: number;
}

export async function planReplay(
  { deliveries }: Pick<Store, 'deliveries'>,
  selection: ReplaySelection,
): Promise<ReplayPlan> {
  const chosen = await tally(deliveries, selection);
  const byState = { ...chosen.byState };
  let { isComplete } = chosen;
  for (const state of DELIVERY_STATES) {
    if (selection.states.includes(state)) continue;
    const other = await tally(deliveries, { ...selection, states: [state] });
    byState[state] = other.count;
    isComplete &&= other.isComplete;
  }
  const { since, until } = selection;
  const states = DELIVERY_STATES.filter((state) => selection.states.includes(state));
  return { since, until, states, count: chosen.count, byState, isComplete };
}

async function tally(
  deliveries: Store['deliveries'],
  selection: ReplaySelection,
): Promise<Pick<ReplayPlan, 'count' | 'byState' | 'isComplete'>> {
  const seen = new Set<number>();
  const byState = { waiting: 0, delivered: 0, dead: 0, canceled: 0 };
  let after: HistoryPlace | null | undefined;
  for (let looked = 0; after !== null && looked < MAX_LOOKED_AT; looked += PART) {
    const input = { ...selection, limit: PART };
    const part = await deliveries.replayable(after === undefined ? input : { ...input, after });
    for (const { sequence, state } of part.found) {
      if (seen.has(sequence)) continue;
      seen.add(sequence);
      byState[state] += 1;
    }
    after = part.next;
    await nextTurn();
  }
  return { count: seen.size, byState, isComplete: after === null };
}
