/** Asks for one address as a run would (guarded, in turn, by robots.txt) and proposes a workflow for the answer. */
import { setTimeout as pause } from 'node:timers/promises';
import type { HttpSource } from '../../model/http-source.ts';
import { createCookieJar } from '../../net/cookies.ts';
import { createHostTurns } from '../../net/host-turns.ts';
import { createAuthorization } from '../sources/http/authorization.ts';
import { createClient } from '../sources/http/client.ts';
import { readCsv } from '../sources/http/csv.ts';
import { createExchange } from '../sources/http/exchange.ts';
import { createHidden } from '../sources/http/hidden.ts';
import { whole } from '../sources/http/items.ts';
import { parseMarkup } from '../sources/http/markup.ts';
import { namedOrigins } from '../sources/http/origins.ts';
import { createOutbound } from '../sources/http/outbound.ts';
import { FIRST_PAGE, pageRequest } from '../sources/http/request.ts';
import { createRobotsCheck } from '../sources/http/robots-check.ts';
import { proposeJson } from './json-proposal.ts';
import { proposeMarkup } from './markup-proposal.ts';
import type { Proposal } from './proposal.ts';

const PACE = { perHost: 1, delayMs: 0 };
/** Of a list of lines, these are enough. */
const LOOKED_AT = 100;

/**
 * @param source nothing but its address
 * @throws SourceError, UnreadableError; Error with a sentence when no records are found
 */
export async function proposeFor(
  source: HttpSource,
  input: { allowNetworks: string; agent: string; signal: AbortSignal; onLog(text: string): void },
): Promise<Proposal> {
  const dispatcher = await createOutbound({
    allowNetworks: input.allowNetworks,
    proxy: null,
    named: namedOrigins(source),
  });
  const request = pageRequest(source, source.urls[0] as string, FIRST_PAGE, new Map());
  const turns = createHostTurns();
  const hidden = createHidden();
  const client = createClient({
    hidden,
    dispatcher,
    turns,
    pace: PACE,
    answerMs: null,
    cookies: createCookieJar(),
    agent: input.agent,
    trusted: new Set([new URL(request.url).origin]),
    signal: input.signal,
    log: (level, text) => {
      if (level !== 'debug') input.onLog(text);
    },
    wait: (ms, signal) => pause(ms, undefined, { signal }),
    random: Math.random,
    now: Date.now,
  });
  const robots = createRobotsCheck({
    setting: null,
    parse: null,
    agent: input.agent,
    client,
    slowDown: turns.slowDown,
  });
  const auth = createAuthorization(null, { client, hidden, now: Date.now });
  const exchange = createExchange({ source, client, auth, robots, warn: input.onLog });
  try {
    const answer = await exchange.ask(request, []);
    const body = await exchange.open(answer, null);
    const { url } = request;
    const linkHeader = answer.headers.link;
    switch (body.parse) {
      case 'json':
        return proposeJson({ url, value: JSON.parse(await whole(body)), linkHeader });
      case 'html':
        return proposeMarkup({ url, document: parseMarkup(await whole(body), { xml: false }) });
      case 'csv':
        return lines(url, 'csv', await first(readCsv(body.chunks, null)));
      case 'ndjson':
        return lines(
          url,
          'ndjson',
          (await whole(body))
            .split('\n')
            .filter((line) => line.trim() !== '')
            .slice(0, LOOKED_AT)
            .map((line) => JSON.parse(line)),
        );
      default:
        throw new Error(
          `${url} answers ${body.parse}, for which nothing is proposed: name its records and fields with \`flowhook workflows add\``,
        );
    }
  } finally {
    await dispatcher.destroy();
  }
}

/** Each line or row is a record: the properties of a list of them. */
function lines(url: string, parse: string, rows: unknown[]): Proposal {
  const proposal = proposeJson({ url, value: rows, linkHeader: undefined });
  return { ...proposal, source: { type: 'http', url, parse } };
}

async function first(batches: AsyncIterable<{ value: unknown }[]>): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const batch of batches) {
    rows.push(...batch.map(({ value }) => value));
    if (rows.length >= LOOKED_AT) break;
  }
  return rows.slice(0, LOOKED_AT);
}
