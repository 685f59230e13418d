/** Which clients may read metrics without a key: their address must be allowed, and `Host` must name this machine. */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { NetworkList, TrustedProxies } from '../../net/host.ts';
import type { Request } from './exchange.ts';

/** Headers in which proxies report the client. */
const FORWARDED = ['x-forwarded-for', 'forwarded', 'x-real-ip'];

/**
 * Whether the client has an allowed address, as the peer or as reported by a trusted proxy. If every proxy is trusted, or
 * an untrusted proxy forwards the request, the client's address is unknown.
 */
export function hasAllowedAddress(
  request: Pick<Request, 'ip' | 'headers'>,
  { allowed, trustProxy }: { allowed: NetworkList | undefined; trustProxy: TrustedProxies | false },
): boolean {
  if (allowed === undefined) return false;
  const isForwarded = FORWARDED.some((name) => request.headers[name] !== undefined);
  // Of the headers that trusted proxies send, only `x-forwarded-for` is used.
  const isKnown = trustProxy && !trustProxy.isEverybody && request.headers['x-forwarded-for'] !== undefined;
  return (!isForwarded || isKnown) && request.ip !== undefined && allowed.contains(request.ip);
}

/** Names that cannot be registered: without a dot, or under a reserved top-level domain. */
const PRIVATE = /(?:^[^.]*|\.(?:localhost|local|internal|home\.arpa))$/;

/**
 * Whether `Host` refers to this machine in a way that an attacker's DNS cannot imitate (DNS rebinding): an address, a
 * name that cannot be registered, the machine's own name or the public URL.
 *
 * @param host the header. Undefined, as in HTTP/1.0, is fine: browsers always send it
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
