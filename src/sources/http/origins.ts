/** The origins that the definition of an HTTP source names. */
import type { HttpSource } from '../../model/http-source.ts';

/** Those of its start URLs and of its token endpoint. Only these may be at addresses that are not public. */
export function namedOrigins({ urls, auth }: Pick<HttpSource, 'urls' | 'auth'>): Set<string> {
  const named = auth?.type === 'oauth2' ? [...urls, auth.tokenUrl] : urls;
  return new Set(named.flatMap((url) => URL.parse(url)?.origin ?? []));
}

/** Whether a URL is at one of these origins. HTTPS at the host of an HTTP origin counts too, but not the reverse. */
export function isAtOrigin(target: URL, origins: ReadonlySet<string>): boolean {
  return (
    origins.has(target.origin) || (target.protocol === 'https:' && origins.has(`http://${target.hostname}`))
  );
}
