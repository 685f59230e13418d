/**
 * Reads a whole source: its start URLs, the pages that follow each of them, and the detail pages of their records.
 *
 *     start URLs ──▶ pages ──▶ parts that are records ──▶ fields ──▶ (detail page ──▶ more fields) ──▶ lines
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { HttpSource, Parse } from '../../../model/http-source.ts';
import { DEFAULT_MAX_PAGES } from '../../../model/http-source.ts';
import { parseExactly } from '../../../model/record.ts';
import { createCookieJar } from '../../../net/cookies.ts';
import type { HostTurns } from '../../../net/host-turns.ts';
import { createAuthorization } from './authorization.ts';
import { openBody, UnreadableError } from './body.ts';
import { type Answer, type Client, type ClientDeps, createClient } from './client.ts';
import { compileFields, compileText, type FieldReader, textOfValue } from './field.ts';
import { countFills, type FillCount } from './fill-count.ts';
import { type Grammar, grammarOf } from './grammar.ts';
import { inOrder } from './in-order.ts';
import { type Item, readItems, whole } from './items.ts';
import { baseOf, parseMarkup } from './markup.ts';
import { createDigest, createPager, type PageRead } from './pages.ts';
import { createPermission } from './permission.ts';
import { readState, remember, type Validators } from './remembered.ts';
import { FIRST_PAGE, type HttpRequest, type PageAt, pageRequest } from './request.ts';
import { SourceError } from './source-error.ts';

/** What broke off is read again from its beginning, as long as none of it was handed out. */
const MAX_READS = 4;
const REREAD_MS = 1_000;

export interface SourceDeps {
  dispatcher: Dispatcher;
  turns: HostTurns;
  /** `flowhook/1.2.3`: what hosts are told, and with its first word what robots.txt is asked for. */
  agent: string;
  signal: AbortSignal;
  log(level: 'debug' | 'info' | 'warn', text: string): void;
  /** Pages that were read. */
  onPage(pages: number, url: string): void;
  random?(): number;
  /** Epoch milliseconds. */
  now?(): number;
  wait?(ms: number, signal: AbortSignal): Promise<void>;
  /** More pages than this are a loop, unless the definition says how many there may be. */
  mostPages?: number;
  /** Where fields are counted, for whoever looks before the end. */
  fills?: FillCount;
  /** What sends requests; a client that really does unless told. */
  connect?(deps: ClientDeps): Client;
}

export interface SourceInput {
  source: HttpSource;
  /** What the last published run left, as it stood in `SourceEnd.state`. */
  state: unknown;
  /** Tells one definition from another: what was unchanged for another one is read again. */
  definitionHash: string;
}

export interface SourceEnd {
  state: unknown;
  /** Every answer was that nothing has changed: nothing was read. */
  unchanged: boolean;
  /** The sentence of the guard that refuses what was read. */
  guard: string | undefined;
  fills: FillCount;
  pages: number;
}

/**
 * Yields lines, each one record's JSON text, in batches.
 *
 * @returns what came of it, once all has been read
 * @throws SourceError, UnreadableError; the signal's reason
 */
export async function* readSource(input: SourceInput, deps: SourceDeps): AsyncGenerator<string[], SourceEnd> {
  const { source } = input;
  const now = deps.now ?? Date.now;
  const wait = deps.wait ?? ((ms, signal) => pause(ms, undefined, { signal }));
  const kept = readState(input.state);
  const memory = remember(source.remember, kept, new Date(now()).toISOString());
  const fills = deps.fills ?? countFills(fieldNames(source));
  const pace = { perHost: source.perHost, delayMs: source.delayMs };
  const clientDeps: ClientDeps = {
    ...deps,
    pace,
    cookies: source.cookies ? createCookieJar() : undefined,
    trusted: new Set(
      source.urls.map(
        (url) => new URL(pageRequest({ ...source, query: {} }, url, FIRST_PAGE, memory.values).url).origin,
      ),
    ),
    wait,
    random: deps.random ?? Math.random,
    now,
  };
  const client = (deps.connect ?? createClient)(clientDeps);
  const auth = createAuthorization(
    source.auth,
    createClient({ ...clientDeps, trusted: tokenOrigin(source) }),
    now,
  );
  const permission = createPermission({
    setting: source.robots,
    parse: source.parse,
    agent: deps.agent,
    client,
    slowDown: (delayMs) => {
      pace.delayMs = Math.max(pace.delayMs, delayMs);
    },
  });
  /** Where records come from one answer for each URL, an answer that has not changed need not be read. */
  const single = source.paginate === null && source.follow === null && source.method === 'GET';
  const known = single && kept.answers?.of === input.definitionHash ? kept.answers.validators : {};
  const validators: Record<string, Validators> = {};
  const readers = new Map<Grammar, FieldReader>();
  const parsed = Object.keys(source.fields).length > 0 || source.follow !== null || memory.look !== undefined;
  let pages = 0;
  let warned = false;

  async function ask(request: HttpRequest, accepted: number[]): Promise<Answer> {
    await permission.before(request.url);
    for (;;) {
      try {
        return await client.send(await auth.sign(request), { accepted });
      } catch (error) {
        if (!(error instanceof SourceError) || error.status !== 401 || !auth.refused()) throw error;
      }
    }
  }

  async function open(answer: Answer, parse: Parse | null) {
    const body = await openBody(answer.body, {
      parse,
      charset: source.charset,
      contentType: answer.headers['content-type'] ?? '',
      contentEncoding: answer.headers['content-encoding'] ?? '',
      url: answer.url,
    });
    if (body.warning !== undefined && !warned) deps.log('warn', body.warning);
    warned ||= body.warning !== undefined;
    await permission.after(answer.url, body.parse);
    return body;
  }

  /** Where nothing stands around the records, the next page would never be found. */
  function refuseBlindPaging(parse: Parse): void {
    const { type = 'page' } = source.paginate ?? {};
    if ((parse === 'csv' || parse === 'ndjson') && (type === 'cursor' || type === 'next_link')) {
      throw new SourceError(
        `The answer is ${parse}: nothing stands around its records that could be the ${type}`,
      );
    }
  }

  function fieldsOf(grammar: Grammar, parse: Parse): FieldReader {
    let reader = readers.get(grammar);
    if (reader === undefined) {
      if (Object.keys(source.fields).length === 0 && (parse === 'html' || parse === 'xml')) {
        throw new SourceError(`The answer is ${parse}: \`fields\` must say what its records consist of`);
      }
      reader = compileFields(source.fields, grammar, { trim: parse === 'html' || parse === 'xml' });
      readers.set(grammar, reader);
    }
    return reader;
  }

  /** The record of one part, without its detail page. */
  function recordOf(
    item: Item,
    grammar: Grammar,
    parse: Parse,
    base: string,
  ): Record<string, unknown> | string {
    if (item.text !== undefined) {
      fills.record();
      return item.text;
    }
    memory.look?.(item.value, grammar);
    fills.record();
    if (Object.keys(source.fields).length === 0 && parse !== 'html' && parse !== 'xml') {
      if (source.follow === null) return JSON.stringify(item.value);
      return typeof item.value === 'object' && item.value !== null
        ? { ...item.value }
        : { value: item.value };
    }
    const record: Record<string, unknown> = {};
    fieldsOf(grammar, parse).read(item.value, { base, record, tell: fills.tell });
    return record;
  }

  /** Adds the fields of a detail page to a record. */
  async function withDetails(
    part: { item: Item; record: Record<string, unknown> },
    linkOf: (part: unknown) => string | undefined,
  ): Promise<string> {
    const { follow } = source;
    const url = linkOf(part.item.value);
    if (follow !== null && url !== undefined) {
      const headers = {
        ...pageRequest({ ...source, body: null, query: {} }, url, FIRST_PAGE, memory.values).headers,
      };
      await again(
        async () => {
          const answer = await ask({ method: 'GET', url, headers, body: null }, [404, 410]);
          if (answer.status === 404 || answer.status === 410) {
            answer.body.on('error', () => {}).destroy();
            deps.log('warn', `The detail page ${url} answered ${answer.status}: its record goes without`);
            return;
          }
          const body = await open(answer, follow.parse);
          const markup = body.parse === 'html' || body.parse === 'xml';
          const text = await whole(body);
          const document = markup
            ? parseMarkup(text, { xml: body.parse === 'xml' })
            : parsedJson(text, answer.url);
          const base = markup ? baseOf(document as never, answer.url) : answer.url;
          const reader = compileFields(follow.fields, grammarOf(body.parse), { trim: markup });
          reader.read(document, { base, record: part.record, tell: fills.tell });
          pages += 1;
          deps.onPage(pages, url);
        },
        () => true,
      );
    }
    return JSON.stringify(part.record);
  }

  /** Does something again that a broken connection has cut short, while `may` says that nothing came of it yet. */
  async function again<T>(work: () => Promise<T>, may: () => boolean): Promise<T> {
    for (let reads = 1; ; reads++) {
      try {
        return await work();
      } catch (error) {
        deps.signal.throwIfAborted();
        if (error instanceof SourceError || error instanceof UnreadableError) throw error;
        if (!isBroken(error)) throw error;
        if (reads >= MAX_READS || !may()) {
          throw new SourceError(
            `The connection broke off in the middle of an answer: ${(error as Error).message}`,
            { cause: error },
          );
        }
        deps.log(
          'warn',
          `The connection broke off in the middle of an answer (${(error as Error).message}): asked again`,
        );
        await wait(REREAD_MS * reads, deps.signal);
      }
    }
  }

  /** One page; its records are yielded as they are read. */
  async function* readPage(
    request: HttpRequest,
    options: { digests: boolean; accepted: number[] },
  ): AsyncGenerator<string[], PageRead | 'unchanged' | 'missing'> {
    let handedOut = 0;
    for (let reads = 1; ; reads++) {
      try {
        return yield* attempt();
      } catch (error) {
        deps.signal.throwIfAborted();
        if (error instanceof SourceError || error instanceof UnreadableError || !isBroken(error)) throw error;
        const { message } = error as Error;
        if (reads >= MAX_READS || handedOut > 0) {
          const after = handedOut > 0 ? ` after ${handedOut} records` : '';
          throw new SourceError(
            `The connection to ${request.url} broke off in the middle of its answer${after}: ${message}`,
            { cause: error },
          );
        }
        deps.log(
          'warn',
          `The connection to ${request.url} broke off in the middle of its answer (${message}): asked again`,
        );
        await wait(REREAD_MS * reads, deps.signal);
      }
    }

    async function* attempt(): AsyncGenerator<string[], PageRead | 'unchanged' | 'missing'> {
      const answer = await ask(
        { ...request, headers: { ...request.headers, ...conditions(known[request.url]) } },
        options.accepted,
      );
      if (answer.status === 304 || options.accepted.includes(answer.status)) {
        answer.body.on('error', () => {}).destroy();
        if (answer.status !== 304) return 'missing';
        validators[request.url] = known[request.url] ?? {};
        return 'unchanged';
      }
      const { url, headers } = answer;
      if (answer.status === 204) {
        answer.body.on('error', () => {}).destroy();
        const nothing = { records: 0, digest: '', around: undefined, grammar: grammarOf('json') };
        return { url, base: url, linkHeader: headers.link, ...nothing };
      }
      const body = await open(answer, source.parse);
      refuseBlindPaging(body.parse);
      const items = await readItems(body, source, { url, parsed });
      const grammar = grammarOf(body.parse);
      const isMarkup = body.parse === 'html' || body.parse === 'xml';
      const base = isMarkup ? baseOf(items.around() as never, url) : url;
      const digest = options.digests ? createDigest() : undefined;
      let records = 0;
      for await (const batch of linesOf(items.batches, { grammar, parse: body.parse, base })) {
        deps.signal.throwIfAborted();
        if (batch.length === 0) continue;
        for (const line of batch) digest?.update(line);
        records += batch.length;
        handedOut += batch.length;
        yield batch;
      }
      pages += 1;
      deps.onPage(pages, url);
      if (single) validators[request.url] = validatorsOf(headers);
      return {
        url,
        base,
        linkHeader: headers.link,
        records,
        digest: digest?.digest('base64') ?? '',
        around: items.around(),
        grammar,
      };
    }
  }

  async function* linesOf(
    batches: AsyncIterable<Item[]>,
    page: { grammar: Grammar; parse: Parse; base: string },
  ): AsyncGenerator<string[]> {
    const { grammar, parse, base } = page;
    const { follow } = source;
    if (follow === null) {
      for await (const batch of batches) {
        yield batch.map((item) => {
          const record = recordOf(item, grammar, parse, base);
          return typeof record === 'string' ? record : JSON.stringify(record);
        });
      }
      return;
    }
    const { find } = compileText(follow.url, grammar, { trim: true });
    const linkOf = (part: unknown) => {
      const text = textOfValue(find(part)[0]);
      const url = text === '' ? null : URL.parse(text, base);
      return url !== null && /^https?:$/.test(url.protocol) ? url.href : undefined;
    };
    // Taken from the connection first: a host would not wait for all the detail pages.
    const taken: Item[][] = [];
    for await (const batch of batches) taken.push(batch);
    async function* parts() {
      for (const batch of taken) {
        for (const item of batch)
          yield { item, record: recordOf(item, grammar, parse, base) as Record<string, unknown> };
      }
    }
    for await (const line of inOrder(parts(), follow.concurrency, (part) => withDetails(part, linkOf)))
      yield [line];
  }

  /** A start URL with its further pages. */
  async function* readPages(start: string): AsyncGenerator<string[], boolean> {
    const pager = createPager(source.paginate);
    const maxPages = source.paginate?.maxPages ?? null;
    const mostPages = deps.mostPages ?? DEFAULT_MAX_PAGES;
    let at: PageAt = pager.first;
    let url: string | undefined;
    for (let count = 1; ; count++) {
      const request =
        url === undefined
          ? pageRequest(source, start, at, memory.values)
          : linkedRequest(source, url, memory.values);
      const accepted = pager.numbered && count > 1 ? [404, 410] : [];
      const page = yield* readPage(request, { digests: pager.digests, accepted });
      if (page === 'unchanged') return false;
      if (page === 'missing') return true;
      const next = pager.next(page);
      if ('end' in next) {
        if (next.said !== undefined) deps.log('warn', next.said);
        return true;
      }
      if (maxPages !== null && count >= maxPages) {
        deps.log('info', `There are more pages; \`paginate.maxPages\` is ${maxPages}`);
        return true;
      }
      if (maxPages === null && count >= mostPages) {
        throw new SourceError(
          `${start} has more than ${mostPages} pages. If that is right, say so with \`paginate.maxPages\`; it may also be a loop`,
        );
      }
      at = next.at;
      url = next.url;
    }
  }

  // What has not changed is read all the same once something else has: a run brings everything.
  const unchanged: string[] = [];
  let changed = false;
  for (const start of source.urls) {
    if (yield* readPages(start)) changed = true;
    else unchanged.push(start);
  }
  if (changed) {
    for (const start of unchanged) {
      delete known[pageRequest(source, start, createPager(source.paginate).first, memory.values).url];
      yield* readPages(start);
    }
  }
  for (const sentence of fills.sentences()) deps.log('warn', sentence);
  const values = memory.left();
  const useful = Object.entries(validators).filter(([, one]) => Object.keys(one).length > 0);
  return {
    state: {
      ...(Object.keys(values).length === 0 ? {} : { values }),
      ...(useful.length === 0
        ? {}
        : { answers: { of: input.definitionHash, validators: Object.fromEntries(useful) } }),
    },
    unchanged: !changed,
    guard: fills.mistake(source.filled),
    fills,
    pages,
  };
}

function parsedJson(text: string, url: string): unknown {
  try {
    return parseExactly(text);
  } catch (error) {
    throw new UnreadableError(`The answer of ${url} is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Of the records, in order. */
export function fieldNames({ fields, follow }: HttpSource): string[] {
  return [...new Set([...Object.keys(fields), ...Object.keys(follow?.fields ?? {})])];
}

/** A page that has an address of its own is asked for like the first, without what its address already says. */
function linkedRequest(source: HttpSource, url: string, state: ReadonlyMap<string, string>): HttpRequest {
  const { headers } = pageRequest(
    { ...source, urls: [], query: {}, body: null },
    'http://localhost/',
    FIRST_PAGE,
    state,
  );
  return { method: 'GET', url, headers, body: null };
}

function tokenOrigin({ auth }: HttpSource): Set<string> {
  return new Set(auth?.type === 'oauth2' ? [new URL(auth.tokenUrl).origin] : []);
}

function conditions(validators: Validators | undefined): Record<string, string> {
  return {
    ...(validators?.etag === undefined ? {} : { 'if-none-match': validators.etag }),
    ...(validators?.lastModified === undefined ? {} : { 'if-modified-since': validators.lastModified }),
  };
}

function validatorsOf(headers: Answer['headers']): Validators {
  const { etag, 'last-modified': lastModified } = headers;
  return { ...(etag === undefined ? {} : { etag }), ...(lastModified === undefined ? {} : { lastModified }) };
}

/** Whether a connection has failed, and not what was read. */
function isBroken(error: unknown): boolean {
  const { code = '' } = error as { code?: string };
  return /^(?:UND_ERR_|ECONN|EPIPE|ETIMEDOUT)/.test(code) || (error as Error).message === 'terminated';
}
