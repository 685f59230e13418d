/**
 * Hookdeck Outpost, at the URL of its API (`http://host:3333/api/v1`): creates a tenant and a destination of type `webhook` for
 * every topic, then publishes events. Written from its API reference (Tenants, Destinations, Publish); not tested.
 */
import { post } from '../deliver-latency.ts';
import { authorized, create, type Peer } from './peer.ts';

export const outpost: Peer = async ({ url, token, endpoint }) => {
  const tenant = `flowhook-benchmark-${Date.now()}`;
  await create(`${url}/tenants/${tenant}`, token, undefined, 'PUT');
  await create(`${url}/tenants/${tenant}/destinations`, token, {
    type: 'webhook',
    topics: '*',
    config: { url: endpoint },
  });
  return (payload) =>
    post({
      url: `${url}/publish`,
      headers: authorized(token),
      body: `{"tenant_id":"${tenant}","topic":"benchmark.sent","eligible_for_retry":true,"data":${payload}}`,
    });
};
