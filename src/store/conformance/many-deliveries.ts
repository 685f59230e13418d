/** Shared by the cases about replays: webhooks with several deliveries, and ways to end them. */
import type { DeliveryState } from '../../model/delivery.ts';
import type { Store } from '../store.ts';
import { load, settle, subscribe } from './sending.ts';
import { makeWorkflow } from './setup.ts';

export interface Many {
  teamId: string;
  workflowId: string;
  webhookId: string;
  ids: string[];
  times: number[];
}

/** A webhook with `count` deliveries, each of its own event. */
export async function manyDeliveries(
  store: Store,
  count: number,
  advance = (_: number) => {},
): Promise<Many> {
  const at = await makeWorkflow(store);
  const webhookId = await subscribe(store, at, ['workflow_failed']);
  const ids: string[] = [];
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    advance(1_000);
    times.push(store.now());
    const made = await store.webhooks.test({ teamId: at.teamId, id: webhookId });
    ids.push(made?.deliveryId ?? '');
  }
  return { ...at, webhookId, ids, times };
}

export const ORDERED = { ordered: true, ratePerSecond: null, timeoutMs: 15_000 };

/** Sends a number of test events to a webhook in sequence. */
export async function testEvents(
  store: Store,
  { teamId, webhookId }: { teamId: string; webhookId: string },
  count: number,
): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    ids.push((await store.webhooks.test({ teamId, id: webhookId }))?.deliveryId ?? '');
  }
  return ids;
}

export async function endAll(
  store: Store,
  { teamId, webhookId }: Many,
  state: Extract<DeliveryState, 'delivered' | 'dead'>,
): Promise<void> {
  for (const due of await load(store, teamId, webhookId)) await settle(store, due, 1, { state });
}
