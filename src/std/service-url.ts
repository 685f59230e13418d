/** The address under which something that listens is reached. */

/** `https://[::1]:8443`, from what a server was told to listen on. */
export function serviceUrl(at: { host: string; port: number; isSecure: boolean }): string {
  return `${at.isSecure ? 'https' : 'http'}://${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
}
