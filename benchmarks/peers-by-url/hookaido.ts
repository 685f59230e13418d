/**
 * Hookaido, at the address of an ingress route (`http://host:8080/benchmark`) that its file delivers to the sink: it has
 * no call that makes an endpoint, so that `FLOWHOOK_BENCH_SINK` must say where the sink is to listen. Written after its
 * pages on ingress and push delivery; not run here.
 */
import { post } from '../deliver-latency.ts';
import { authorized, type Peer } from './peer.ts';

export const hookaido: Peer = async ({ url, token }) => {
  const headers = token === '' ? { 'content-type': 'application/json' } : authorized(token);
  return (payload) => post({ url, headers, body: payload });
};
