/** Reads one page and its detail pages. Yields the records while the page is being read. */
import { createHash } from 'node:crypto';
import type { Follow, HttpSource, Parse } from '../../model/http-source.ts';
import { parseExactly } from '../../std/exact-json.ts';
import { discard, type HttpResponse } from './client.ts';
import type { Exchange } from './exchange.ts';
import { compileFields, compileText, type FieldReader, type FillCount, textOfValue } from './fields.ts';
import type { ConditionalRequests, StateTracker } from './kept-state.ts';
import type { PageRead } from './pages.ts';
import { baseOf, type Grammar, grammarOf, isMarkup, parseMarkup } from './paths.ts';
import { type HttpRequest, linkedRequest, SourceError, UnreadableError } from './request.ts';
import { type Item, readItems, whole } from './rows.ts';

export interface PageDeps extends DetailDeps {
  source: HttpSource;
  conditional: ConditionalRequests;
}

/**
 * @param options.digests whether to compute a digest of the records
 * @param options.accepted statuses which mean that this page does not exist
 * @returns what the pager needs to know about the page; `unchanged` for 304; `missing` for an accepted status
 */
export async function* readPage(
  request: HttpRequest,
  options: { digests: boolean; accepted: readonly number[] },
  deps: PageDeps,
): AsyncGenerator<string[], PageRead | 'unchanged' | 'missing'> {
  const { source, conditional, exchange } = deps;
  const { url: asked } = request;
  let handedOut = 0;
  for (let reads = 1; ; reads++) {
    try {
      return yield* attempt();
    } catch (error) {
      await waitToReread(error, { url: asked, reads, handedOut }, deps);
    }
  }

  async function* attempt(): AsyncGenerator<string[], PageRead | 'unchanged' | 'missing'> {
    const headers = { ...request.headers, ...conditional.conditions(asked) };
    const response = await exchange.ask({ ...request, headers }, options.accepted);
    if (response.status === 304 || options.accepted.includes(response.status)) {
      discard(response);
      if (response.status !== 304) return 'missing';
      conditional.unchanged(asked);
      return 'unchanged';
    }
    if (response.status === 204) {
      discard(response);
      return { ...nothing(response), records: 0, digest: '' };
    }
    const read = yield* records(response);
    deps.onPage(response.url);
    conditional.read(asked, response.headers);
    return read;
  }

  async function* records(response: HttpResponse): AsyncGenerator<string[], PageRead> {
    const body = await exchange.open(response, source.parse);
    const { parse } = body;
    refuseBlindPaging(source, parse);
    const items = await readItems(body, source, { url: response.url, parsed: deps.maker.parses });
    const base = isMarkup(parse) ? baseOf(items.around() as never, response.url) : response.url;
    const page: PageKind = { parse, grammar: grammarOf(parse), base };
    const digest = options.digests ? createHash('sha1') : undefined;
    const before = handedOut;
    for await (const batch of linesOf(items.batches, page, deps)) {
      deps.signal.throwIfAborted();
      if (batch.length === 0) continue;
      for (const line of batch) digest?.update(line);
      handedOut += batch.length;
      yield batch;
    }
    return {
      ...nothing(response),
      base,
      grammar: page.grammar,
      records: handedOut - before,
      digest: digest?.digest('base64') ?? '',
      around: items.around(),
    };
  }
}

function nothing({ url, headers }: HttpResponse): Omit<PageRead, 'records' | 'digest'> {
  return { url, base: url, linkHeader: headers.link, around: undefined, grammar: grammarOf('json') };
}

async function* linesOf(
  batches: AsyncIterable<Item[]>,
  page: PageKind,
  deps: PageDeps,
): AsyncGenerator<string[]> {
  const { source, maker } = deps;
  if (source.follow !== null) {
    yield* withDetails(batches, page, source as HttpSource & { follow: Follow }, deps);
    return;
  }
  for await (const batch of batches) yield batch.map((item) => maker.line(item, page));
}

/** Refuses pagination that reads the next page from the response, because CSV and NDJSON contain only records. */
function refuseBlindPaging({ paginate }: HttpSource, parse: Parse): void {
  if (parse !== 'csv' && parse !== 'ndjson') return;
  if (paginate?.type !== 'cursor' && paginate?.type !== 'next_link') return;
  throw new SourceError(
    `The response is ${parse}, which contains only records and no ${paginate.type} for the next page. Use another \`paginate.type\``,
  );
}

interface DetailDeps extends RereadDeps {
  exchange: Exchange;
  maker: RecordMaker;
  fills: FillCount;
  state: ReadonlyMap<string, string>;
  onPage(url: string): void;
}

/** Yields the records of a page with the fields of their detail pages. The lines are JSON, in the order of the page. */
async function* withDetails(
  batches: AsyncIterable<Item[]>,
  page: PageKind,
  source: HttpSource & { follow: Follow },
  deps: DetailDeps,
): AsyncGenerator<string[]> {
  const { follow } = source;
  const { find } = compileText(follow.url, page.grammar, { trim: true });
  // The whole page is read before any detail page, because the host would not keep the connection open for so long.
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
    const response = await deps.exchange.ask(
      linkedRequest(source, url, deps.state, follow.parse),
      [404, 410],
    );
    if (response.status === 304) {
      discard(response);
      throw new SourceError(
        `The detail page ${url} returned 304 Not Modified. Remove the conditional header from \`source.headers\``,
      );
    }
    if (response.status === 204 || response.status === 404 || response.status === 410) {
      discard(response);
      deps.log('warn', `The detail page ${url} returned ${response.status}: its record gets no details`);
      return;
    }
    const { parse, ...body } = await deps.exchange.open(response, follow.parse);
    const text = await whole({ parse, ...body });
    const isDocument = isMarkup(parse);
    const document = isDocument ? parseMarkup(text, { xml: parse === 'xml' }) : parsed(text, response.url);
    const base = isDocument ? baseOf(document as never, response.url) : response.url;
    const reader = compileFields(follow.fields, grammarOf(parse), { trim: isDocument });
    reader.read(document, { base, record, count: deps.fills.field });
    deps.onPage(url);
  }
}

function parsed(text: string, url: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    const { message } = error as Error;
    throw new UnreadableError(`The response of ${url} is not valid JSON: ${message}`, { cause: error });
  }
}

/** What all records of one page share. */
interface PageKind {
  parse: Parse;
  grammar: Grammar;
  /** The base URL of its links. */
  base: string;
}

interface RecordMaker {
  /** Whether the records must be parsed. If false, they can be passed on as text. */
  parses: boolean;
  /** The record as JSON text. */
  line(item: Item, page: PageKind): string;
  /** Returns the record as an object, to which the fields of its detail page can be added. */
  record(item: Item, page: PageKind): Record<string, unknown>;
}

export function createRecordMaker(source: HttpSource, memory: StateTracker, fills: FillCount): RecordMaker {
  const hasFields = Object.keys(source.fields).length > 0;
  const readers = new Map<Parse, FieldReader>();

  function readerOf(parse: Parse): FieldReader {
    let reader = readers.get(parse);
    if (reader === undefined) {
      if (!hasFields)
        throw new SourceError(
          `The response is ${parse}, so \`fields\` must define the fields of its records`,
        );
      reader = compileFields(source.fields, grammarOf(parse), { trim: isMarkup(parse) });
      readers.set(parse, reader);
    }
    return reader;
  }

  function recordValue(item: Item, { parse, grammar, base }: PageKind): unknown {
    memory.look?.(item.value, grammar);
    fills.record();
    if (!hasFields && !isMarkup(parse)) return item.value;
    const record: Record<string, unknown> = {};
    readerOf(parse).read(item.value, { base, record, count: fills.field });
    return record;
  }

  return {
    parses: hasFields || source.follow !== null || memory.look !== undefined,
    line(item, page) {
      if (item.text === undefined) return JSON.stringify(recordValue(item, page));
      fills.record();
      return item.text;
    },
    record(item, page) {
      const value = recordValue(item, page);
      return typeof value === 'object' && value !== null ? { ...value } : { value };
    },
  };
}

const MAX_READS = 4;
const REREAD_MS = 1_000;

interface RereadDeps {
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * After an interrupted connection, waits until the response may be requested again.
 *
 * @param read.reads how many times the response was requested so far, at least 1
 * @param read.handedOut how many of its records were already yielded; they cannot be withdrawn
 * @throws the given error, unless the connection was interrupted; SourceError if the response must not be requested
 *   again
 */
async function waitToReread(
  error: unknown,
  read: { url: string; reads: number; handedOut: number },
  { signal, log, wait }: RereadDeps,
): Promise<void> {
  signal.throwIfAborted();
  if (!isInterrupted(error)) throw error;
  const { code } = error as { code?: string };
  const message = code === 'UND_ERR_BODY_TIMEOUT' ? 'no data for a minute' : (error as Error).message;
  const what = `The connection to ${read.url} was interrupted in the middle of the response`;
  if (read.reads >= MAX_READS || read.handedOut > 0) {
    const after = read.handedOut > 0 ? ` after ${read.handedOut} records` : '';
    throw new SourceError(`${what}${after}: ${message}`, { cause: error });
  }
  log('warn', `${what} (${message}): retrying`);
  await wait(REREAD_MS * read.reads, signal);
}

function isInterrupted(error: unknown): boolean {
  const { code = '' } = error as { code?: string };
  return /^(?:UND_ERR_|ECONN|EPIPE|ETIMEDOUT)/.test(code) || (error as Error).message === 'terminated';
}

/**
 * Works on several values concurrently, and yields the results in order. At most `atOnce` values are in progress or
 * waiting to be yielded. Throws the first failure once all work in progress has ended.
 */
async function* inOrder<T, R>(
  values: AsyncIterable<T>,
  atOnce: number,
  work: (value: T) => Promise<R>,
): AsyncGenerator<R> {
  const under: Promise<R>[] = [];
  try {
    for await (const value of values) {
      const working = work(value);
      // A failure is thrown when the result is awaited. Until then, the failure must not count as an unhandled
      // rejection.
      working.catch(() => undefined);
      under.push(working);
      if (under.length >= atOnce) yield await (under.shift() as Promise<R>);
    }
    while (under.length > 0) yield await (under.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(under);
  }
}
