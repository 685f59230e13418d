/** Webhooks, as their owner: makes one and learns its id, and ends it. */
import { ask } from './ask.js';

/** @import { Bundle, ZObject } from 'zapier-platform-core' */

/**
 * Repeating it creates nothing, so that whoever lost the answer may ask again.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {{ workflowId: string | undefined, url: string, events: readonly string[] }} wanted without a workflow:
 *   every workflow of the team
 * @returns {Promise<string>} the id of the webhook
 */
export async function subscribe(z, bundle, { workflowId, url, events }) {
  const response = await ask(z, bundle, {
    method: 'POST',
    ...(workflowId === undefined
      ? { path: '/v1/integrations/webhooks', body: { webhookUrl: url, events } }
      : { path: '/v1/integrations/webhooks/subscribe', body: { workflowId, webhookUrl: url, events } }),
  });
  return response.getHeader('x-webhook-id') ?? (await findByUrl(z, bundle, url, events));
}

/**
 * One that is gone is fine: it was unsubscribed before, or the service ended it after a 410.
 *
 * @param {ZObject} z
 * @param {Bundle} bundle
 * @param {{ id?: string | undefined, url?: string | undefined }} webhook by its URL where the id is not known
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
 * The answer of subscribing has no id in its body, and something between may have dropped the header. The URL is one
 * that nobody else has.
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
    throw new z.errors.Error('Flowhook took the subscription, but does not list it', 'Subscription');
  return own.id;
}
