/** Addresses of the dashboard, for people to open. */
import { serviceUrl } from '../../std/service-url.ts';

/** What follows `#` is sent to nobody, and stands in no log: the page itself reads it. */
export function linkUrl(base: string, token: string): string {
  return `${base}/ui/#/welcome/${token}`;
}

/** Where a browser on this machine finds what listens there: "every address" is none that all of them open. */
export function browsableUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return serviceUrl({ ...at, host: { '0.0.0.0': '127.0.0.1', '::': '::1' }[at.host] ?? at.host });
}
