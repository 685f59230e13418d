/**
 * Convoy, at the URL of a project (`http://host/api/v1/projects/ID`): creates an endpoint and a subscription to every event,
 * then sends events. Written from its API reference (create an endpoint, a subscription, an event); not tested.
 */
import { post } from '../deliver-latency.ts';
import { authorized, create, type Peer } from './peer.ts';

export const convoy: Peer = async ({ url, token, endpoint }) => {
  const name = `flowhook benchmark ${Date.now()}`;
  const made = await create<{ data: { uid: string } }>(`${url}/endpoints`, token, { name, url: endpoint });
  const { uid } = made.data;
  await create(`${url}/subscriptions`, token, {
    name,
    endpoint_id: uid,
    filter_config: { event_types: ['*'] },
  });
  return (payload) =>
    post({
      url: `${url}/events`,
      headers: authorized(token),
      body: `{"endpoint_id":"${uid}","event_type":"benchmark.sent","data":${payload}}`,
    });
};
