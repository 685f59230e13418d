/** Where a webhook's requests go, with all that is the same for each of them: worked out once, not once a delivery. */
import { hideEchoes } from './echo.ts';
import { hiddenValues, loggedRequest } from './headers.ts';

export interface Destination {
  origin: string;
  /** Path and query. */
  path: string;
  /** For the log: without user, password and fragment. */
  url: string;
  /** Those that every request carries: names and values in turn. */
  headers: readonly string[];
  /** The same for the log, with an empty `content-length`. */
  loggedHeaders: Readonly<Record<string, string>>;
  /** Takes the credentials that are sent out of a text that came back. */
  hide(text: string): string;
}

/** Made for each delivery, whatever a webhook has of its own. */
const OF_A_DELIVERY = /^webhook-(?:id|timestamp|signature|event|attempt)$/;

/**
 * The webhook's own headers come after ours that may be changed, and before those that make the delivery.
 *
 * @param input.headers the webhook's own, as `headersMistake` lets them through
 * @throws TypeError when the URL cannot be read; subscribe takes none such
 */
export function destinationOf(input: {
  url: string;
  headers: Readonly<Record<string, string>>;
  userAgent: string;
}): Destination {
  const url = new URL(input.url);
  const own = Object.entries(input.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sent: Record<string, string> = {
    'accept-encoding': 'identity',
    'user-agent': input.userAgent,
    ...basicAuthorization(url),
    ...Object.fromEntries(own.filter(([name]) => !OF_A_DELIVERY.test(name))),
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

/** User and password of a URL never belong into the request line. */
function basicAuthorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const plain = `${decoded(username)}:${decoded(password)}`;
  return { authorization: `Basic ${Buffer.from(plain, 'utf8').toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign is allowed in a URL and stands for itself.
    return text;
  }
}
