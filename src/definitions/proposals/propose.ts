/** Requests one URL as a run would, with the address guard and robots.txt, and proposes a workflow for the response. */
import type { HttpSource } from '../../model/http-source.ts';
import { createHostTurns } from '../../net/host-turns.ts';
import { connectSource } from '../../sources/http/exchange.ts';
import { createOutbound, namedOrigins } from '../../sources/http/outbound.ts';
import { parseMarkup } from '../../sources/http/paths.ts';
import { FIRST_PAGE, pageRequest, UnreadableError } from '../../sources/http/request.ts';
import { readCsv, whole } from '../../sources/http/rows.ts';
import { createRedactor } from '../../sources/secrets.ts';
import { proposeJson } from './json.ts';
import { proposeMarkup } from './markup.ts';
import { LOOKED_AT, type Proposal } from './proposal.ts';

const NO_STATE: ReadonlyMap<string, string> = new Map();
/**
 * @param source a definition that contains only the URL
 * @throws SourceError, UnreadableError; Error if no records are found
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
  const request = pageRequest(source, source.urls[0] as string, FIRST_PAGE, NO_STATE);
  const { exchange } = connectSource(
    source,
    {
      dispatcher,
      turns: createHostTurns().of('proposal', { bindsOthers: true }),
      agent: input.agent,
      signal: input.signal,
      log: (level, text) => {
        if (level !== 'debug') input.onLog(text);
      },
      redactor: createRedactor(),
    },
    NO_STATE,
  );
  try {
    const response = await exchange.ask(request, []);
    const body = await exchange.open(response, null);
    const { url } = request;
    const linkHeader = response.headers.link;
    switch (body.parse) {
      case 'json':
        return proposeJson({ url, value: parseJson(await whole(body), url), linkHeader });
      case 'html':
        return proposeMarkup({ url, document: parseMarkup(await whole(body), { xml: false }) });
      case 'csv':
        return proposeRows(url, 'csv', await firstRows(readCsv(body.chunks, null)));
      case 'ndjson':
        return proposeRows(
          url,
          'ndjson',
          (await whole(body))
            .split('\n')
            .filter((line) => line.trim() !== '')
            .slice(0, LOOKED_AT)
            .map((line) => parseJson(line, url)),
        );
      default:
        throw new Error(
          `${url} returned ${body.parse}, and this command can propose a workflow only for web pages, JSON, CSV and NDJSON. Write a workflow file with \`records\` and \`fields\` yourself`,
        );
    }
  } finally {
    await dispatcher.destroy();
  }
}

/** Proposes a workflow for a response in which each row is a record. */
function proposeRows(url: string, parse: string, rows: unknown[]): Proposal {
  const proposal = proposeJson({ url, value: rows, linkHeader: undefined });
  return { ...proposal, source: { type: 'http', url, parse } };
}

function parseJson(text: string, url: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    throw new UnreadableError(`The response of ${url} is not valid JSON: ${message}`, { cause: error });
  }
}

async function firstRows(batches: AsyncIterable<{ value: unknown }[]>): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const batch of batches) {
    rows.push(...batch.map(({ value }) => value));
    if (rows.length >= LOOKED_AT) break;
  }
  return rows.slice(0, LOOKED_AT);
}
