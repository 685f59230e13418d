/** Follows the events of a team over HTTP by long polling, also across restarts of the server. */
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { parseExactly } from '../model/record.ts';
import { NotFoundError } from './exit.ts';

const WAIT_S = 25;
const LIMIT = 100;
/** The timeout of a request, which the server may hold for `WAIT_S`. */
const ANSWER_MS = 40_000;
const AWAY_MS = 1_000;

export interface Remote {
  server: string;
  key: string;
}

/** An event: its fields, and its body as it was sent. */
export interface WireEvent {
  fields: { id: string; type: string; sequence: number; workflowId?: string };
  body: string;
}

/** Yields events from now on until the signal is aborted. While the server is unreachable it retries. */
export async function* followEvents(
  remote: Remote,
  { signal, say, onReady }: { signal: AbortSignal; say(text: string): void; onReady(): void },
): AsyncGenerator<WireEvent> {
  let after: number | undefined;
  let isAway = false;
  while (!signal.aborted) {
    try {
      // After an outage ask without waiting, to notice at once that the server is back.
      const wait = isAway ? 0 : WAIT_S;
      const query = after === undefined ? 'after=now' : `after=${after}&limit=${LIMIT}&wait=${wait}`;
      const text = await get(remote, `/v1/events?${query}`, signal);
      const { events, next } = parseExactly(text) as { events: WireEvent['fields'][]; next: number };
      if (isAway) say('The server is there again');
      isAway = false;
      if (after === undefined) onReady();
      after =
        after === undefined || events.length > 0 ? next : await knownPlace(remote, next, { signal, say });
      for (const fields of events) yield { fields, body: JSON.stringify(fields) };
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof AwayError)) throw error;
      if (!isAway) say(`${error.message}. Trying again until it is there`);
      isAway = true;
      await pause(AWAY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/**
 * The cursor to continue with after an empty answer. A server with a new database counts from 1 again: with the old
 * cursor, no event would arrive until it has counted that far.
 */
async function knownPlace(
  remote: Remote,
  after: number,
  { signal, say }: { signal: AbortSignal; say(text: string): void },
): Promise<number> {
  const { next: newest } = JSON.parse(await get(remote, '/v1/events?after=now', signal)) as { next: number };
  if (newest >= after) return after;
  say(
    `The newest event of the server is #${newest}, before #${after}: it has another database now. Going on from there`,
  );
  return newest;
}

/** @throws NotFoundError | Problem `unauthorized` | Error when the server cannot be reached */
export async function readEvent(remote: Remote, id: string): Promise<WireEvent> {
  const text = await get(remote, `/v1/events/${encodeURIComponent(id)}`, new AbortController().signal);
  const fields = parseExactly(text) as WireEvent['fields'];
  return { fields, body: JSON.stringify(fields) };
}

/** The server cannot be reached, or cannot answer at the moment. */
class AwayError extends Problem {
  constructor(sentence: string, cause: unknown) {
    super('database_unavailable', { sentence, cause });
  }
}

async function get({ server, key }: Remote, path: string, signal: AbortSignal): Promise<string> {
  let status: number;
  let text: string;
  try {
    const response = await fetch(server + path, {
      headers: { 'x-api-key': key },
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    status = response.status;
    text = await response.text();
  } catch (cause) {
    throw new AwayError(`The server ${server} cannot be reached`, cause);
  }
  if (status === 200) return text;
  const sentence = sentenceIn(text) ?? `It answered ${status}`;
  if (status === 401) throw new Problem('unauthorized', { sentence });
  if (status === 404) throw new NotFoundError(`${sentence} (${server}${path})`);
  if (status >= 500 || status === 429)
    throw new AwayError(`The server ${server} cannot answer: ${sentence}`, text);
  throw new Error(`The server ${server} refuses: ${sentence}`);
}

function sentenceIn(text: string): string | undefined {
  try {
    return String((JSON.parse(text) as { error: unknown }).error);
  } catch {
    return undefined;
  }
}
