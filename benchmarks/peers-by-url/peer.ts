/** The interface of a driver for another product that delivers webhooks and is already running. */
import type { RawRequest } from '../open-loop.ts';

export interface PeerInput {
  /** The URL of its API, without a slash at the end. */
  url: string;
  /** From the environment: `FLOWHOOK_BENCH_<NAME>_TOKEN`. */
  token: string;
  /** The endpoint for its messages. */
  endpoint: string;
}

/** Creates one endpoint, and returns a function that returns the request for a message. The payload is JSON. */
export type Peer = (input: PeerInput) => Promise<(payload: string) => RawRequest>;

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
