/** The parts of a webhook's requests that are the same for every delivery, computed once. */
import { hideEchoes } from './echo.ts';
import { hiddenValues, loggedRequest } from './logged-headers.ts';

export interface Destination {
  origin: string;
  /** Path and query. */
  path: string;
  /** For the log: without user, password and fragment. */
  url: string;
  /** The headers of every request: names and values alternate. */
  headers: readonly string[];
  /** The same headers for the log, with an empty `content-length`. */
  loggedHeaders: Readonly<Record<string, string>>;
  /** Masks the credentials of the request in a text of the response. */
  hide(text: string): string;
}

/**
 * Custom headers override those defaults of the service that a webhook may change.
 *
 * @param input.headers the custom headers, validated by `headersMistake`
 * @throws TypeError when the URL is invalid; subscribing refuses such URLs
 */
export function destinationOf(input: {
  url: string;
  headers: Readonly<Record<string, string>>;
  userAgent: string;
}): Destination {
  const url = new URL(input.url);
  const custom = Object.entries(input.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sent: Record<string, string> = {
    'accept-encoding': 'identity',
    'user-agent': input.userAgent,
    ...basicAuthorization(url),
    ...Object.fromEntries(custom),
    'content-type': 'application/json',
  };
  const path = url.pathname + url.search;
  return {
    origin: url.origin,
    path,
    url: url.origin + path,
    headers: Object.entries(sent).flat(),
    loggedHeaders: loggedRequest({ host: url.host, 'content-length': '', ...sent }, input.headers),
    hide: hideEchoes(hiddenValues(sent, input.headers)),
  };
}

/** User and password of the URL become a header: they must not appear in the request line. */
function basicAuthorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const plain = `${decoded(username)}:${decoded(password)}`;
  return { authorization: `Basic ${Buffer.from(plain, 'utf8').toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A URL may contain a percent sign that is no escape; it is taken literally.
    return text;
  }
}
