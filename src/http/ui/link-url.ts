/** URLs of the dashboard, for people to open. */
import { serviceUrl } from '../../net/host.ts';

/** The URL of a sign-in link. Browsers do not send what follows `#`, so the token reaches no log: the page reads it. */
export function linkUrl(base: string, token: string): string {
  return `${base}/ui/#/welcome/${token}`;
}

/** A URL that a browser on this machine can open: not all of them open the wildcard addresses `0.0.0.0` and `::`. */
export function browsableUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return serviceUrl({ ...at, host: { '0.0.0.0': '127.0.0.1', '::': '::1' }[at.host] ?? at.host });
}
