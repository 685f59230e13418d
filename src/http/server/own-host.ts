/**
 * Protection against DNS rebinding, where a route needs no key: a page of anybody's may let its own name lead to this
 * machine and then ask it in the browser of somebody near, but the browser sends that name in `Host`.
 */
import { isIP } from 'node:net';
import { hostname } from 'node:os';

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
