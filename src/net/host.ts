/** Hosts as URLs and settings name them. */

/** The host of a URL; IPv6 addresses without brackets. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** Whether it names this machine alone, without asking a name server. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}
