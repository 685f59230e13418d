/** The interface of a driver for another product that delivers webhooks and is already running. */
import type { RawRequest } from '../open-loop.ts';

export interface PeerInput {
  /** The URL of its API, without a slash at the end. */
  url: string;
  /** From the environment, for example `FLOWHOOK_BENCH_SVIX_TOKEN`. */
  token: string;
  /** The URLs of the endpoints. Each receives messages of its own. */
  endpoints: readonly string[];
}

/** Returns the request for a message. The payload is a JSON object. */
export type Sender = (payload: string) => RawRequest;

export interface Peer {
  /** What a person must set up. Printed with every error of this product. */
  needs: string;
  /** Creates the endpoints. Returns a sender for each of them, in the same order. */
  connect(input: PeerInput): Promise<Sender[]>;
}

/**
 * Creates an object over HTTP.
 *
 * @throws Error with the response, if its status is not 2xx
 */
export async function create<Made>(
  url: string,
  token: string,
  body?: unknown,
  method: 'POST' | 'PUT' = 'POST',
): Promise<Made> {
  const response = await fetch(url, {
    method,
    headers: authorized(token),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} returned ${response.status}: ${text.slice(0, 500)}`);
  return (text === '' ? undefined : JSON.parse(text)) as Made;
}

export function authorized(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
}

/** Creates something for each endpoint, one at a time. `name` is new in each run. */
export async function forEach<Made>(
  endpoints: readonly string[],
  make: (endpoint: string, name: string) => Promise<Made>,
): Promise<Made[]> {
  const run = Date.now().toString(36);
  const made: Made[] = [];
  for (const [n, endpoint] of endpoints.entries()) made.push(await make(endpoint, `benchmark-${run}-${n}`));
  return made;
}
