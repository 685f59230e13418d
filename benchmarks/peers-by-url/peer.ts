/** A product that delivers webhooks and runs somewhere already: what a driver of its HTTP API has to do. */
import type { Ask } from '../open-loop.ts';

export interface PeerInput {
  /** Of its API, without a slash at the end. */
  url: string;
  /** From the environment: `FLOWHOOK_BENCH_<NAME>_TOKEN`. */
  token: string;
  /** Where its messages are to arrive. */
  endpoint: string;
}

/** Makes what sending needs, with one endpoint. Answers what sends one message; the payload is JSON. */
export type Peer = (input: PeerInput) => Promise<(payload: string) => Ask>;

/** Creates something. Throws an Error with what was answered, unless it is there afterwards. */
export async function create<Made>(
  url: string,
  token: string,
  body?: unknown,
  method: 'POST' | 'PUT' = 'POST',
): Promise<Made> {
  const answer = await fetch(url, {
    method,
    headers: authorized(token),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url} was answered ${answer.status}: ${text.slice(0, 500)}`);
  return (text === '' ? undefined : JSON.parse(text)) as Made;
}

export function authorized(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
}
