/** Checks of what users type for a webhook: its URL and custom headers. */

/** @throws Error that names the first line that is not a header */
export function headersFrom(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(':');
    const name = line.slice(0, at).trim();
    if (at < 1 || name === '')
      throw new Error(`“${line.trim()}” is not a header. Write each one as “name: value”.`);
    headers[name] = line.slice(at + 1).trim();
  }
  return headers;
}

export interface UrlRemark {
  /** Why the URL cannot be subscribed. */
  mistake?: string;
  /** A warning about a valid URL. */
  hint?: string;
}

export function urlRemark(text: string): UrlRemark {
  if (text === '') return {};
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) {
    return { mistake: 'Enter a complete URL, such as https://example.com/hooks/flowhook' };
  }
  if (text.length > 2_048) return { mistake: 'The URL is longer than 2,048 characters' };
  if (/^(localhost|127\.|\[::1\])/.test(url.hostname)) {
    return { hint: 'This address is the machine that runs Flowhook, which may not be yours.' };
  }
  if (url.protocol === 'http:') {
    return {
      hint: 'Without TLS, anyone on the network path can read the deliveries. Use https:// if you can.',
    };
  }
  return {};
}
