/** Reads the detail pages of records, and adds their fields (`source.follow`). */
import type { Follow, HttpSource } from '../../model/http-source.ts';
import { parseExactly } from '../../model/record.ts';
import { discard } from './client.ts';
import type { Exchange } from './exchange.ts';
import { compileFields, compileText, textOfValue } from './field.ts';
import type { FillCount } from './fill-count.ts';
import { grammarOf, isMarkup } from './grammar.ts';
import { inOrder } from './in-order.ts';
import { type Item, whole } from './items.ts';
import { baseOf, parseMarkup } from './markup.ts';
import type { PageKind, RecordMaker } from './record-maker.ts';
import { linkedRequest } from './request.ts';
import { type RereadDeps, waitToReread } from './reread.ts';
import { SourceError, UnreadableError } from './source-error.ts';

export interface DetailDeps extends RereadDeps {
  exchange: Exchange;
  maker: RecordMaker;
  fills: FillCount;
  state: ReadonlyMap<string, string>;
  onPage(url: string): void;
}

/** Yields the records of a page with their details, as lines of JSON in the order of the page. */
export async function* withDetails(
  batches: AsyncIterable<Item[]>,
  page: PageKind,
  source: HttpSource & { follow: Follow },
  deps: DetailDeps,
): AsyncGenerator<string[]> {
  const { follow } = source;
  const { find } = compileText(follow.url, page.grammar, { trim: true });
  // All are read from the connection first: the host would not wait for the detail pages.
  const taken: Item[] = [];
  for await (const batch of batches) taken.push(...batch);

  async function lineOf({ value }: Item, record: Record<string, unknown>): Promise<string> {
    const text = textOfValue(find(value)[0]);
    const url = text === '' ? null : URL.parse(text, page.base);
    if (url !== null && /^https?:$/.test(url.protocol)) await addDetails(url.href, record, source, deps);
    return JSON.stringify(record);
  }

  async function* parts() {
    for (const item of taken) yield { item, record: deps.maker.record(item, page) };
  }
  const lines = inOrder(parts(), follow.concurrency, ({ item, record }) => lineOf(item, record));
  for await (const line of lines) yield [line];
}

async function addDetails(
  url: string,
  record: Record<string, unknown>,
  source: HttpSource & { follow: Follow },
  deps: DetailDeps,
): Promise<void> {
  for (let reads = 1; ; reads++) {
    try {
      return await attempt();
    } catch (error) {
      await waitToReread(error, { url, reads, handedOut: 0 }, deps);
    }
  }

  async function attempt(): Promise<void> {
    const { follow } = source;
    const answer = await deps.exchange.ask(linkedRequest(source, url, deps.state, follow.parse), [404, 410]);
    if (answer.status === 304) {
      discard(answer);
      throw new SourceError(
        `The detail page ${url} answered 304 Not Modified: remove the header from \`source.headers\` that asks for it`,
      );
    }
    if (answer.status === 204 || answer.status === 404 || answer.status === 410) {
      discard(answer);
      deps.log('warn', `The detail page ${url} answered ${answer.status}: its record goes without`);
      return;
    }
    const { parse, ...body } = await deps.exchange.open(answer, follow.parse);
    const text = await whole({ parse, ...body });
    const isDocument = isMarkup(parse);
    const document = isDocument ? parseMarkup(text, { xml: parse === 'xml' }) : parsed(text, answer.url);
    const base = isDocument ? baseOf(document as never, answer.url) : answer.url;
    const reader = compileFields(follow.fields, grammarOf(parse), { trim: isDocument });
    reader.read(document, { base, record, tell: deps.fills.tell });
    deps.onPage(url);
  }
}

function parsed(text: string, url: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    const { message } = error as Error;
    throw new UnreadableError(`The answer of ${url} is not valid JSON: ${message}`, { cause: error });
  }
}
