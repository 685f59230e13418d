/**
 * Hookaido, at the URL of an ingress route (`http://host:8080/benchmark`) that its configuration delivers to the sink. Its
 * API cannot create endpoints, so `FLOWHOOK_BENCH_SINK` must set where the sink listens. Written from its pages on ingress
 * and push delivery; not tested.
 */
import { post } from '../deliver-latency.ts';
import { authorized, type Peer } from './peer.ts';

export const hookaido: Peer = async ({ url, token }) => {
  const headers = token === '' ? { 'content-type': 'application/json' } : authorized(token);
  return (payload) => post({ url, headers, body: payload });
};
