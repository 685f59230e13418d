/** Which clients may read the metrics without a key: those at an address that a setting names, under a name of ours. */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
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

/** Names below these cannot be registered, and neither can names without a dot. */
const PRIVATE = /(?:^[^.]*|\.(?:localhost|local|internal|home\.arpa))$/;

/**
 * Whether `Host` names this machine in a way that no stranger can bring about: an address, a name that cannot be
 * registered, the machine's own name or the public URL.
 *
 * @param host the header; undefined, as in HTTP/1.0, is fine: browsers always send it
 */
export function isOwnHost(host: string | undefined, publicUrl: string): boolean {
  if (host === undefined) return true;
  const name = nameOf(host);
  return (
    isIP(name.replace(/^\[|\]$/g, '')) !== 0 ||
    PRIVATE.test(name) ||
    name === nameOf(hostname()) ||
    name === nameOf(URL.parse(publicUrl)?.host ?? '')
  );
}

function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}
