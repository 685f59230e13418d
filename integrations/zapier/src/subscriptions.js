/** Subscribes and unsubscribes webhooks. */
import { ask } from './ask.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

/**
 * Subscribes a webhook. Repeating this creates nothing, so it is safe after a lost response.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {{ workflowId: string | undefined, url: string, events: readonly string[], filter?: string | undefined }} wanted
 *   undefined `workflowId`: all workflows of the team
 * @returns {Promise<string>} the id of the webhook
 */
export async function subscribe(z, bundle, { workflowId, url, events, filter }) {
  // Servers before filters know this path only without a workflow.
  const path = '/v1/integrations/webhooks';
  const isSimple = workflowId !== undefined && filter === undefined;
  const response = await ask(z, bundle, {
    method: 'POST',
    path: isSimple ? `${path}/subscribe` : path,
    body: { webhookUrl: url, events, workflowId, filter },
  });
  return response.getHeader('x-webhook-id') ?? (await findByUrl(z, bundle, url, events));
}

/**
 * Unsubscribes a webhook. Does nothing if it no longer exists, for example because of an earlier 410.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {{ id?: string | undefined, url?: string | undefined }} webhook its URL is used if the id is unknown
 */
export async function unsubscribe(z, bundle, { id, url }) {
  const path = '/v1/integrations/webhooks/unsubscribe';
  await ask(z, bundle, {
    method: 'DELETE',
    path:
      id === undefined
        ? `${path}?${new URLSearchParams({ webhookUrl: url ?? '' })}`
        : `${path}/${encodeURIComponent(id)}`,
    accept: [404],
  });
}

/**
 * Finds the webhook by its URL, which is unique: the body of the response to a subscription has no id, and a proxy may have
 * dropped the header.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {string} url
 * @param {readonly string[]} events
 */
async function findByUrl(z, bundle, url, events) {
  const { data } = await ask(z, bundle, { path: '/v1/integrations/webhooks/list' });
  const own = data.webhooks.find(
    (webhook) => webhook.url === url && JSON.stringify(webhook.events) === JSON.stringify(events),
  );
  if (own === undefined)
    throw new z.errors.Error('Flowhook accepted the subscription, but does not list it', 'Subscription');
  return own.id;
}
