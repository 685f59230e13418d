/** `flowhook webhooks test|deliveries|delivery|replay` against a server. */
import { type Flowhook, NotFound } from 'flowhook-client';
import { agreeToReplay, followReplay, heldWords, printBegun, printOutcome } from './follow-replay.ts';
import { print } from './output.ts';
import { webhookIdAt } from './remote-webhooks.ts';
import type { Options } from './settings.ts';
import {
  printDeliveries,
  printDelivery,
  printSentAgain,
  sayOnItsWay,
  waitForAttempt,
} from './show-delivery.ts';
import { filterFrom, rangeFrom, refuseRange } from './webhook-flags.ts';

/** How often the server is asked while waiting. */
const LOOK_MS = 250;

export async function sendTestAt(server: Flowhook, name: string, options: Options): Promise<void> {
  const id = await webhookIdAt(server, name);
  const { state } = await server.webhooks.get(id);
  const { eventId, deliveryId } = await server.webhooks.test(id);
  if (options.wait === true && state !== 'paused') return waitAt(server, deliveryId, options);
  print(options, { eventId, deliveryId }, [deliveryId]);
  sayOnItsWay(deliveryId, state === 'paused');
}

export async function listDeliveriesAt(server: Flowhook, name: string, options: Options): Promise<void> {
  const { limit, states, since, until } = filterFrom(options);
  const at = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms));
  const filter = { state: states, since: at(since), until: at(until) };
  const found = await server.webhooks.deliveries(await webhookIdAt(server, name), filter).take(limit);
  printDeliveries(found, options, Date.now());
}

export async function showDeliveryAt(server: Flowhook, id: string, options: Options): Promise<void> {
  const shown = await server.deliveries.get(id);
  const url = await server.webhooks.get(shown.webhookId).then(
    (webhook) => webhook.url,
    (error) => {
      if (error instanceof NotFound) return undefined;
      throw error;
    },
  );
  printDelivery(shown, url, options, Date.now());
}

export async function replayAt(server: Flowhook, name: string, options: Options): Promise<void> {
  if (options.since !== undefined) return replaySinceAt(server, name, options);
  refuseRange(name, options);
  const made = await server.deliveries.replay(name);
  const { deliveryId, attempt } = made;
  if (options.wait === true && !(await isPausedAt(server, deliveryId))) {
    return waitAt(server, deliveryId, options, attempt);
  }
  printSentAgain(made, options);
}

async function isPausedAt(server: Flowhook, deliveryId: string): Promise<boolean> {
  const { webhookId } = await server.deliveries.get(deliveryId);
  return (await server.webhooks.get(webhookId)).state === 'paused';
}

async function replaySinceAt(server: Flowhook, name: string, options: Options): Promise<void> {
  const { states, since, until } = rangeFrom(options, Date.now());
  const id = await webhookIdAt(server, name);
  const asked = {
    states,
    since: new Date(since),
    // Otherwise until now, by the clock of the server.
    ...(options.until === undefined ? {} : { until: new Date(until) }),
  };
  const plan = await server.webhooks.planReplay(id, asked);
  if (!(await agreeToReplay(options, plan, await server.webhooks.get(id)))) return;
  // What was agreed to, and not what has come since.
  const replay = await server.webhooks.replaySince(id, { ...asked, until: plan.until });
  if (options.wait !== true) return printBegun(replay, options);
  const look = () => server.webhooks.readReplay(id, replay.id);
  const held = async () => heldWords(await server.webhooks.get(id), Date.now());
  printOutcome(await followReplay({ look, held, everyMs: LOOK_MS }), options);
}

function waitAt(server: Flowhook, deliveryId: string, options: Options, after = 0): Promise<void> {
  const look = () => server.deliveries.get(deliveryId);
  return waitForAttempt({ look, everyMs: LOOK_MS, after }, options, Date.now);
}
