/**
 * Hookaido, at the URL before its ingress routes. Its API cannot create endpoints, so its configuration must have a route for
 * each endpoint, and `FLOWHOOK_BENCH_SINK` must set where the sink listens.
 */
import { post } from '../deliver-latency.ts';
import type { Peer } from './peer.ts';

export const hookaido: Peer = {
  needs:
    'Hookaido needs `https_only off` and `dns_rebind_protection off` in its egress defaults, because it does not send to ' +
    'loopback otherwise, and a route for each of the 55 endpoints, with `auth basic` and a `deliver` to a path below ' +
    'FLOWHOOK_BENCH_SINK (http://127.0.0.1:PORT): /0 to /49 deliver to /hookaido/0 to /hookaido/49, and /50 to /54, which ' +
    'hang at times, to /hookaido/bad/50 to /hookaido/bad/54. ' +
    'The URL is http://HOST:PORT; the token is user:password',
  async connect({ url, token, endpoints }) {
    // It takes no bearer token at its ingress.
    const basic = { authorization: `Basic ${Buffer.from(token).toString('base64')}` };
    const headers = { 'content-type': 'application/json', ...(token === '' ? {} : basic) };
    return endpoints.map((endpoint) => {
      const route = new URL(endpoint).pathname.split('/').at(-1);
      return (payload) => post({ url: `${url}/${route}`, headers, body: payload });
    });
  },
};
