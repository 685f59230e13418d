/** `flowhook webhooks test|deliveries|delivery|replay` against a server. */
import { type Flowhook, NotFound } from 'flowhook-client';
import { print } from './output.ts';
import { webhookIdAt } from './remote-webhooks.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import {
  followReplay,
  printDeliveries,
  printDelivery,
  printReplay,
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
  const { deliveryId } = await server.deliveries.replay(name);
  if (options.wait === true) return waitAt(server, deliveryId, options);
  print(options, { deliveryId }, [deliveryId]);
  say(`On its way again; \`flowhook webhooks delivery ${deliveryId}\` shows it`);
}

async function replaySinceAt(server: Flowhook, name: string, options: Options): Promise<void> {
  const { states, since, until } = rangeFrom(options, Date.now());
  const webhookId = await webhookIdAt(server, name);
  const range = {
    states,
    since: new Date(since),
    // Otherwise until now, by the clock of the server.
    ...(options.until === undefined ? {} : { until: new Date(until) }),
  };
  const replay = await server.webhooks.replaySince(webhookId, range);
  say(`Replay ${replay.id} of deliveries ${states.join(', ')} from ${replay.since} to ${replay.until}`);
  const look = () => server.webhooks.readReplay(webhookId, replay.id);
  printReplay(options.wait === true ? await followReplay({ look, everyMs: LOOK_MS }) : replay, options);
}

function waitAt(server: Flowhook, deliveryId: string, options: Options): Promise<void> {
  const look = () => server.deliveries.get(deliveryId);
  return waitForAttempt({ look, everyMs: LOOK_MS }, options, Date.now);
}
