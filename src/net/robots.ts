/** Checks whether robots.txt (RFC 9309) allows a URL, and which `Crawl-delay` it requests. */

/**
 * The result of requesting a robots.txt: its text, `none` if the file does not exist, or the reason why the file could
 * not be read.
 */
export type RobotsFile = { text: string } | { none: true } | { unreachable: string };

export type RobotsVerdict = { allowed: true; delayMs: number } | { allowed: false; why: string };

export interface Robots {
  /** Checks a URL. The robots.txt of each host is requested only once. */
  verdict(url: string): Promise<RobotsVerdict>;
}

type Rules = ReturnType<typeof import('robots-parser').default>;

/** The maximum delay. A longer `Crawl-delay` is shortened to this value. */
const MAX_DELAY_MS = 30_000;

/** @param options.agent the user agent whose rules apply, `flowhook` */
export function createRobots(options: { agent: string; read(url: string): Promise<RobotsFile> }): Robots {
  const files = new Map<string, Promise<RobotsFile>>();
  // Each robots.txt is parsed only once, and not for each page, because a file may be as large as half a megabyte.
  const parsed = new Map<string, Rules>();
  return {
    async verdict(url) {
      const at = new URL('/robots.txt', url).href;
      const file = files.get(at) ?? options.read(at);
      files.set(at, file);
      const read = await file;
      if ('none' in read) return { allowed: true, delayMs: 0 };
      if ('unreachable' in read) {
        return {
          allowed: false,
          why: `${at} cannot be read (${read.unreachable}), so the site must not be read (RFC 9309). Check that the site is up and that the URL is right. If the site's owner permits it, set \`robots: ignore\``,
        };
      }
      const { default: parser } = (await import('robots-parser')) as unknown as {
        default: typeof import('robots-parser').default;
      };
      const rules = parsed.get(at) ?? parser(at, read.text);
      parsed.set(at, rules);
      if (rules.isDisallowed(url, options.agent) === true) {
        const line = rules.getMatchingLineNumber(url, options.agent);
        const rule = read.text.split(/\r\n|\r|\n/)[line - 1]?.trim();
        return {
          allowed: false,
          why: `${at} does not allow ${url}${rule ? ` (line ${line}: ${rule})` : ''}. If the site's owner permits it, set \`robots: ignore\``,
        };
      }
      // For values such as `2,5`, `getCrawlDelay` returns NaN.
      const delay = rules.getCrawlDelay(options.agent) || 0;
      return { allowed: true, delayMs: Math.min(MAX_DELAY_MS, Math.max(0, delay * 1_000)) };
    },
  };
}
