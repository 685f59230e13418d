/** Finds the webhook or the delivery that a command names, in all teams. */

import type { Webhook } from '../model/webhook.ts';
import { nearest } from '../std/nearest.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { NotFoundError, UsageError } from './exit.ts';

type Delivery = NonNullable<Awaited<ReturnType<Store['deliveries']['get']>>>;

/**
 * The webhook with this id, or the only one with this URL.
 *
 * @throws NotFoundError, with the id that was probably meant; UsageError when several have the URL
 */
export async function findWebhook(store: Store, name: string): Promise<Webhook> {
  const all: Webhook[] = [];
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    const webhook = await store.webhooks.get({ teamId, id: name });
    if (webhook !== undefined) return webhook;
    for await (const one of everyRow(store.webhooks.list, { teamId })) all.push(one);
  }
  const [only, ...others] = all.filter(({ url }) => url === name);
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) {
    const ids = [only, ...others].map(({ id }) => id).join(', ');
    throw new UsageError(`Several webhooks have this URL: name one by its id (${ids})`);
  }
  const meant = nearest(
    name,
    all.flatMap(({ id, url }) => [id, url]),
  );
  const advice =
    meant === undefined ? '`flowhook webhooks list` shows what there is' : `Did you mean ${meant}?`;
  throw new NotFoundError(`No webhook "${name}" found. ${advice}`);
}

/** @throws NotFoundError */
export async function findDelivery(store: Store, id: string): Promise<{ teamId: string; found: Delivery }> {
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    const found = await store.deliveries.get({ teamId, id });
    if (found !== undefined) return { teamId, found };
  }
  throw new NotFoundError(
    `No delivery "${id}" found. \`flowhook webhooks deliveries WEBHOOK\` shows those of a webhook; old ones are ` +
      'deleted after a while',
  );
}
