/** What one types for a webhook: its URL, and headers of its own. */

/** @throws Error that names the line that is none */
export function headersFrom(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(':');
    const name = line.slice(0, at).trim();
    if (at < 1 || name === '') throw new Error(`“${line.trim()}” is no header: write name: value`);
    headers[name] = line.slice(at + 1).trim();
  }
  return headers;
}

/** What is to be said of a URL while it is typed, before the service is asked. */
interface UrlRemark {
  /** Why it cannot be subscribed. */
  mistake?: string;
  /** What its owner should know. */
  hint?: string;
}

export function urlRemark(text: string): UrlRemark {
  if (text === '') return {};
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) {
    return { mistake: 'A complete URL is needed, such as https://example.com/hooks/flowhook' };
  }
  if (text.length > 2_048) return { mistake: 'A URL has 2,048 characters at most' };
  if (/^(localhost|127\.|\[::1\])/.test(url.hostname)) {
    return { hint: 'This is the machine that Flowhook runs on, which may not be yours' };
  }
  if (url.protocol === 'http:') {
    return { hint: 'Without TLS everybody on the way can read what is sent: https:// is better' };
  }
  return {};
}
