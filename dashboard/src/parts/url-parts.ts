/** How a URL is cut when it does not fit: in its middle, for URLs of one receiver differ at their ends. */

export interface UrlParts {
  /** `https://` */
  scheme: string;
  host: string;
  /** What is given up first. */
  middle: string;
  /** Never cut. */
  end: string;
}

/** The longest end that is shown as a whole, from a slash; and how much of it, where there is no slash near. */
const MAX_END = 20;
const BARE_END = 8;

/** The parts of a URL; together they are the whole text. */
export function urlParts(url: string): UrlParts {
  const [, scheme = '', host = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (rest.length <= MAX_END) return { scheme, host, middle: '', end: rest };
  // A name is told apart better than its last letters.
  const slash = rest.lastIndexOf('/', rest.length - 2);
  const from = rest.length - slash <= MAX_END ? slash : rest.length - BARE_END;
  return { scheme, host, middle: rest.slice(0, from), end: rest.slice(from) };
}
