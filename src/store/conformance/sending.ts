/** Shared by the cases about webhooks and deliveries: subscribing, loading, settling. */

import assert from 'node:assert/strict';
import type { Attempt, DeliveryClass, DueDelivery, NextStep } from '../../model/delivery.ts';
import type { Webhook, WebhookSettings } from '../../model/webhook.ts';
import type { Settlement } from '../operations/settle.ts';
import type { Store } from '../store.ts';
import type { LaneName } from '../transaction.ts';
import { makeJob, makeWorkflow } from './setup.ts';

export const OK: Attempt = {
  startedAt: 1,
  durationMs: 2,
  outcome: 'ok',
  status: 204,
  error: null,
  response: 'thanks',
  details: {
    url: 'https://a.test/',
    requestHeaders: { 'webhook-id': 'evt_1' },
    responseHeaders: { 'x-received': 'yes' },
    remoteAddress: '192.0.2.1',
    timing: { queuedMs: 1, dnsMs: 2, connectMs: null, tlsMs: null, firstByteMs: 3 },
  },
};
export const FAILED: Attempt = {
  startedAt: 3,
  durationMs: 4,
  outcome: 'timeout',
  status: null,
  error: 'No response within 15 s',
  response: null,
  details: null,
};

/** The node that sends in the cases. */
export const HOLDER = { nodeId: 'node-a', leaseMs: 15_000, limit: 1_000 };
/** The epoch of settlements in cases that do not depend on epochs. It is greater than any lane's epoch. */
const ANY_EPOCH = Number.MAX_SAFE_INTEGER;

export interface Due {
  teamId: string;
  id: string;
  webhookId: string;
  rewrites?: number;
}

export function settlement(
  { teamId, id, webhookId, rewrites = 0 }: Due,
  attempt: number,
  next: NextStep,
  log = OK,
): Settlement {
  return { teamId, deliveryId: id, webhookId, epoch: ANY_EPOCH, attempt, rewrites, next, log, health: null };
}

export async function settle(
  store: Store,
  due: Due | undefined,
  attempt: number,
  next: NextStep,
  log = OK,
): Promise<void> {
  await store.deliveries.settle({ settlements: [settlement(due as Due, attempt, next, log)] });
}

/** Subscribes a URL that contains the events; returns the webhook's id. */
export async function subscribe(
  store: Store,
  at: { teamId: string; workflowId: string | null },
  events: string[] = ['*'],
  settings?: WebhookSettings,
): Promise<string> {
  const result = await store.webhooks.subscribe({
    ...at,
    url: `https://a.test/${events.join()}`,
    events,
    secret: 'sealed',
    limit: 1_000,
    ...(settings === undefined ? {} : { settings }),
  });
  return (result as { webhook: Webhook }).webhook.id;
}

export const MANY: Record<DeliveryClass, number> = { live: 1_000, retry: 1_000, replay: 1_000 };

/** All due deliveries of a webhook. */
export function load(store: Store, teamId: string, webhookId: string): Promise<DueDelivery[]> {
  return store.deliveries.load({ teamId, webhookId, limits: MANY, ordered: false });
}

/** The ids of webhooks with due deliveries. */
export async function dueLanes(store: Store): Promise<Set<string>> {
  return new Set((await store.deliveries.lanes(HOLDER)).map((lane) => lane.webhookId));
}

/** One webhook with one due delivery, of the event of a queued job. */
export async function oneDelivery(
  store: Store,
): Promise<LaneName & { workflowId: string; due: DueDelivery }> {
  const at = await makeWorkflow(store);
  const webhookId = await subscribe(store, at);
  await makeJob(store, at);
  const [due] = await load(store, at.teamId, webhookId);
  assert.ok(due !== undefined);
  return { ...at, webhookId, due };
}
