/** Who may read the metrics without a key: whoever comes from an address that the setting names. */
import type { FastifyRequest } from 'fastify';
import type { NetworkList } from '../net/network-list.ts';
import type { TrustedProxies } from '../net/trusted-proxies.ts';

/** Headers by which a proxy says that somebody else asks. */
const FORWARDED = ['x-forwarded-for', 'forwarded', 'x-real-ip'];

/**
 * Whether the client itself has such an address, be it directly or by the word of a proxy that is believed. Where
 * everybody's word is believed, or somebody's that is not, nobody knows whose address it is.
 */
export function comesFrom(
  request: Pick<FastifyRequest, 'ip' | 'headers'>,
  { allowed, trustProxy }: { allowed: NetworkList | undefined; trustProxy: TrustedProxies | false },
): boolean {
  if (allowed === undefined) return false;
  const isForwarded = FORWARDED.some((name) => request.headers[name] !== undefined);
  // What is believed of the proxies that are named is `x-forwarded-for` alone.
  const isKnown = trustProxy && !trustProxy.isEverybody && request.headers['x-forwarded-for'] !== undefined;
  return (!isForwarded || isKnown) && allowed.contains(request.ip);
}
