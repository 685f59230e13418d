/** The cookies of one run, as a browser would keep them until it is closed. */

export interface CookieJar {
  /** The `cookie` header for a URL, or nothing. */
  header(url: string): Promise<string | undefined>;
  /** Keeps what `set-cookie` headers say; what a host may not set is left out. */
  store(setCookies: readonly string[], url: string): Promise<void>;
}

/** The library that knows the rules (RFC 6265, public suffixes) is loaded with the first cookie. */
export function createCookieJar(): CookieJar {
  let jar: Promise<import('tough-cookie').CookieJar> | undefined;
  return {
    async header(url) {
      return jar === undefined ? undefined : (await jar).getCookieString(url);
    },
    async store(setCookies, url) {
      if (setCookies.length === 0) return;
      jar ??= import('tough-cookie').then(({ CookieJar }) => new CookieJar());
      for (const cookie of setCookies) await (await jar).setCookie(cookie, url, { ignoreError: true });
    },
  };
}
