/**
 * Svix, at the URL of its server: creates an application with one endpoint for each endpoint, because a message goes to all
 * endpoints of its application.
 */
import { post } from '../deliver-latency.ts';
import { authorized, create, forEach, type Peer } from './peer.ts';

export const svix: Peer = {
  needs:
    'Svix needs SVIX_WHITELIST_SUBNETS=[127.0.0.1/32], because it does not send to loopback otherwise. ' +
    'The URL is that of its server, without a path; the token is one that `svix-server jwt generate` prints',
  connect: ({ url, token, endpoints }) =>
    forEach(endpoints, async (endpoint, name) => {
      const { id } = await create<{ id: string }>(`${url}/api/v1/app/`, token, { name });
      await create(`${url}/api/v1/app/${id}/endpoint/`, token, { url: endpoint });
      return (payload) =>
        post({
          url: `${url}/api/v1/app/${id}/msg/`,
          headers: authorized(token),
          body: `{"eventType":"benchmark.sent","payload":${payload}}`,
        });
    }),
};
