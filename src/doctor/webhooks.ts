/** Webhooks and deliveries: what cannot be sent, and why. */
import { isIP } from 'node:net';
import { canonicalEvents, nearestEvent } from '../model/event.ts';
import type { Webhook } from '../model/webhook.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import { hostOf } from '../net/host.ts';
import { countWords, durationWords, grouped } from '../std/amounts.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { type Check, ofStore, ok, type Result, warning } from './check.ts';
import { listed } from './listed.ts';
import type { Subject } from './subject.ts';

const HOUR_MS = 3_600_000;
/** By then a delivery has had four attempts. */
const LONG_MS = HOUR_MS;
const MOST = 10_000;

export const webhookAddresses: Check = ofStore(
  'network',
  'webhook-addresses',
  async (store, { allowNetworks: policy }, { resolver, online }) => {
    const active = (await webhooksOf(store)).filter(({ state }) => state === 'active');
    const byHost = Map.groupBy(active, ({ url }) => hostOf(url));
    const refused: string[] = [];
    let unasked = 0;
    for (const [host, ofHost] of byHost) {
      // Only addresses and `localhost` can be resolved without a name server.
      const isKnown = isIP(host) !== 0 || host === 'localhost' || host.endsWith('.localhost');
      if (!isKnown && online === null) {
        unasked += 1;
        continue;
      }
      const why = await refusalOf(host, policy, resolver);
      // Not the URL: its path or query is often a secret.
      if (why !== undefined) refused.push(`${listed(ofHost.map(({ id }) => id))} (${host}: ${why})`);
    }
    if (refused.length > 0) {
      return warning({
        what: `Undeliverable webhooks: ${listed(refused)}`,
        why: 'Their deliveries are retried for days and then given up',
        fix: 'Add their networks to FLOWHOOK_ALLOW_NETWORKS, or unsubscribe the webhooks',
      });
    }
    const more = unasked === 0 ? '' : `; ${countWords(unasked, 'host name')} not resolved (--online does)`;
    return ok(`${countWords(active.length, 'active webhook')}, none with a refused address${more}`);
  },
  30_000,
);

async function refusalOf(
  host: string,
  policy: AddressPolicy,
  resolver: Subject['resolver'],
): Promise<string | undefined> {
  try {
    const verdicts = (await resolver.resolve(host)).map((address) => policy.verdict(address));
    return verdicts.find((verdict) => !verdict.allowed)?.why;
  } catch (cause) {
    return (cause as Error).message;
  }
}

export const webhookHealth: Check = ofStore('work', 'webhooks', async (store, _settings, { node }) => {
  const all = await webhooksOf(store);
  return webhooksResult(all, { now: store.now(), openCircuits: node?.openCircuits ?? 0 });
});

export function webhooksResult(
  all: readonly Pick<Webhook, 'id' | 'url' | 'state' | 'failingSince' | 'pausedReason'>[],
  { now, openCircuits }: { now: number; openCircuits: number },
): Result {
  const failing = all.filter(
    ({ state, failingSince }) => state === 'active' && failingSince !== null && now - failingSince >= HOUR_MS,
  );
  // A webhook that was paused while it did not fail was paused on purpose.
  const paused = all.filter(({ state, failingSince }) => state === 'paused' && failingSince !== null);
  const words = [
    ...failing.map(
      ({ id, url, failingSince }) =>
        `${id} (${hostOf(url)}) for ${durationWords(now - (failingSince ?? now))}`,
    ),
    ...paused.map(({ id, url }) => `${id} (${hostOf(url)}) paused`),
    ...(openCircuits === 0 ? [] : [`circuit breaker open for ${countWords(openCircuits, 'endpoint')}`]),
  ];
  if (words.length === 0) return ok(`${countWords(all.length, 'webhook')}, none failing for an hour`);
  return warning({
    what: `Failing webhooks: ${listed(words)}`,
    why: 'Their deliveries wait, and are given up after about four days; replay works for as long as events are kept',
    fix: '`flowhook webhooks show ID` shows the last responses; then `flowhook webhooks resume ID` and `replay`',
  });
}

export const webhookEvents: Check = ofStore('work', 'webhook-events', async (store) =>
  webhookEventsResult(await webhooksOf(store)),
);

export function webhookEventsResult(all: readonly Pick<Webhook, 'id' | 'events'>[]): Result {
  const words = all.flatMap(({ id, events }) => {
    // Not the name itself, which is the team's.
    const unknown = canonicalEvents(events).unknown;
    const meant = unknown.flatMap((name) => nearestEvent(name) ?? []);
    const advice = meant.length === 0 ? '' : ` (probably ${listed(meant)})`;
    return unknown.length === 0 ? [] : [`${id}${advice}`];
  });
  if (words.length === 0) return ok(`${countWords(all.length, 'webhook')}, all for events that exist`);
  return warning({
    what: `Webhooks for events that do not exist: ${listed(words)}`,
    why: 'Nothing is ever sent for such a name',
    fix: '`flowhook webhooks show ID` names them; subscribe the right ones, then `flowhook webhooks unsubscribe ID`',
  });
}

export const deliveries: Check = ofStore('work', 'deliveries', async (store) => {
  const { waiting, oldestWaitingAt, complete } = (await store.status.work({ most: MOST })).deliveries;
  return deliveriesResult({
    waiting,
    complete,
    oldestMs: oldestWaitingAt === null ? 0 : store.now() - oldestWaitingAt,
  });
});

export function deliveriesResult(found: { waiting: number; complete: boolean; oldestMs: number }): Result {
  const { waiting, complete, oldestMs } = found;
  if (waiting === 0) return ok('No deliveries are waiting');
  const what = `Delivery backlog: ${grouped(waiting)}${complete ? '' : ' or more'}, the oldest waiting ${durationWords(oldestMs)}`;
  if (oldestMs < LONG_MS) return ok(what);
  return warning({
    what,
    why: 'Endpoints fail, webhooks are paused, or no node sends (FLOWHOOK_ROLE)',
    fix: 'The webhooks finding names those that fail; `flowhook webhooks deliveries ID` lists the backlog',
  });
}

async function webhooksOf(store: Store): Promise<Webhook[]> {
  const all: Webhook[] = [];
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    for await (const webhook of everyRow(store.webhooks.list, { teamId })) {
      all.push(webhook);
      if (all.length === MOST) return all;
    }
  }
  return all;
}
