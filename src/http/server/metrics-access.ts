/** Decides which clients may read the metrics without a key: those at an address that the setting names. */
import type { NetworkList, TrustedProxies } from '../../net/host.ts';
import type { Request } from './exchange.ts';

/** Headers with which proxies name the client behind them. */
const FORWARDED = ['x-forwarded-for', 'forwarded', 'x-real-ip'];

/**
 * Whether the client itself has an allowed address: as the peer, or as reported by a trusted proxy. When every proxy is
 * trusted, or an untrusted one forwards the request, the client's address is unknown.
 */
export function hasAllowedAddress(
  request: Pick<Request, 'ip' | 'headers'>,
  { allowed, trustProxy }: { allowed: NetworkList | undefined; trustProxy: TrustedProxies | false },
): boolean {
  if (allowed === undefined) return false;
  const isForwarded = FORWARDED.some((name) => request.headers[name] !== undefined);
  // Of the headers of trusted proxies only `x-forwarded-for` is evaluated.
  const isKnown = trustProxy && !trustProxy.isEverybody && request.headers['x-forwarded-for'] !== undefined;
  return (!isForwarded || isKnown) && request.ip !== undefined && allowed.contains(request.ip);
}
