/**
 * Hookdeck Outpost, at the URL of its API: creates a tenant with one destination of type `webhook` for each endpoint, because
 * an event goes to all destinations of its tenant, which may have 20.
 */
import { post } from '../deliver-latency.ts';
import { authorized, create, forEach, type Peer } from './peer.ts';

export const outpost: Peer = {
  needs:
    'Outpost needs the topic benchmark.sent in TOPICS, and DELIVERY_MAX_CONCURRENCY=100, because it sends one ' +
    'delivery at a time otherwise. The URL is http://HOST:PORT/api/v1; the token is its API_KEY',
  async connect({ url, token, endpoints }) {
    if (!url.endsWith('/api/v1')) throw new Error(`${url} does not end with /api/v1`);
    return forEach(endpoints, async (endpoint, tenant) => {
      await create(`${url}/tenants/${tenant}`, token, undefined, 'PUT');
      await create(`${url}/tenants/${tenant}/destinations`, token, {
        type: 'webhook',
        topics: ['benchmark.sent'],
        config: { url: endpoint },
      });
      return (payload) =>
        post({
          url: `${url}/publish`,
          headers: authorized(token),
          body: `{"tenant_id":"${tenant}","topic":"benchmark.sent","eligible_for_retry":true,"data":${payload}}`,
        });
    });
  },
};
