/**
 * Svix, at the URL of its server: creates an application and an endpoint, then sends messages. Written from its API reference
 * (Application, Endpoint, Message: create); not tested.
 */
import { post } from '../deliver-latency.ts';
import { authorized, create, type Peer } from './peer.ts';

export const svix: Peer = async ({ url, token, endpoint }) => {
  const { id } = await create<{ id: string }>(`${url}/api/v1/app/`, token, { name: 'flowhook benchmark' });
  await create(`${url}/api/v1/app/${id}/endpoint/`, token, { url: endpoint });
  return (payload) =>
    post({
      url: `${url}/api/v1/app/${id}/msg/`,
      headers: authorized(token),
      body: `{"eventType":"benchmark.sent","payload":${payload}}`,
    });
};
