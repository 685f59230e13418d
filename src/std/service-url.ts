/** The URL of a server, from where it listens. */

/** For example `https://[::1]:8443`. */
export function serviceUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return `${at.isSecure ? 'https' : 'http'}://${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
}
