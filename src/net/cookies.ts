/** The cookies of one run. They are treated as session cookies and discarded when the run ends. */

/**
 * Limits for the cookies of one host. Cookies beyond these limits are dropped, because hosts refuse requests with too
 * many cookies.
 */
const MAX_COOKIES = 50;
const MAX_CHARACTERS = 4_096;

export interface CookieJar {
  /** Returns the `cookie` header for a URL. Undefined if there are no cookies for the URL. */
  header(url: string): Promise<string | undefined>;
  /** Stores the cookies from `set-cookie` headers. Cookies that the host is not allowed to set are ignored. */
  store(setCookies: readonly string[], url: string): Promise<void>;
}

/**
 * Creates an empty cookie jar. The library for the cookie rules (RFC 6265, public suffixes) is loaded with the first
 * cookie.
 */
export function createCookieJar(): CookieJar {
  const kept = new Map<string, Map<string, number>>();
  let jar: Promise<import('tough-cookie').CookieJar> | undefined;
  return {
    async header(url) {
      return jar === undefined ? undefined : (await jar).getCookieString(url);
    },
    async store(setCookies, url) {
      if (setCookies.length === 0) return;
      jar ??= import('tough-cookie').then(({ CookieJar }) => new CookieJar());
      const { hostname } = new URL(url);
      const there = kept.get(hostname) ?? new Map<string, number>();
      kept.set(hostname, there);
      for (const cookie of setCookies) {
        const [pair = ''] = cookie.split(';', 1);
        const [name = ''] = pair.split('=', 1);
        const sizes = new Map(there).set(name, pair.length);
        if (sizes.size > MAX_COOKIES || sizes.values().reduce((sum, size) => sum + size, 0) > MAX_CHARACTERS)
          continue;
        there.set(name, pair.length);
        await (await jar).setCookie(cookie, url, { ignoreError: true });
      }
    },
  };
}
