/**
 * Convoy, at the URL of a project: creates an endpoint with a subscription to every event for each endpoint, and names the
 * endpoint in each event.
 */
import { post } from '../deliver-latency.ts';
import { authorized, create, forEach, type Peer } from './peer.ts';

export const convoy: Peer = {
  needs:
    'Convoy needs a project (outgoing) with an API key, made in its dashboard. ' +
    'The URL is http://HOST/api/v1/projects/ID; the token is the API key of the project',
  async connect({ url, token, endpoints }) {
    if (!/\/api\/v1\/projects\/[^/]+$/.test(url)) throw new Error(`${url} is not the URL of a project`);
    return forEach(endpoints, async (endpoint, name) => {
      const made = await create<{ data: { uid: string } }>(`${url}/endpoints`, token, {
        name,
        url: endpoint,
      });
      const { uid } = made.data;
      const filter = { event_types: ['*'] };
      await create(`${url}/subscriptions`, token, { name, endpoint_id: uid, filter_config: filter });
      return (payload) =>
        post({
          url: `${url}/events`,
          headers: authorized(token),
          body: `{"endpoint_id":"${uid}","event_type":"benchmark.sent","data":${payload}}`,
        });
    });
  },
};
