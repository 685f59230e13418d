/**
 * Reads a whole source: its start URLs, the pages that follow each of them, and the detail pages of their records.
 *
 *     start URLs ──▶ pages ──▶ parts that are records ──▶ fields ──▶ (detail page ──▶ more fields) ──▶ lines
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { DEFAULT_MAX_PAGES, type HttpSource } from '../../../model/http-source.ts';
import { createCookieJar } from '../../../net/cookies.ts';
import type { HostTurns } from '../../../net/host-turns.ts';
import { createAuthorization } from './authorization.ts';
import { type Client, type ClientDeps, createClient } from './client.ts';
import { createConditionalRequests } from './conditional-requests.ts';
import { createExchange } from './exchange.ts';
import { countFills, type FillCount } from './fill-count.ts';
import { createHidden, type Hidden } from './hidden.ts';
import { readState, trackState } from './kept-state.ts';
import { createPager } from './pages.ts';
import { type PageDeps, readPage } from './read-page.ts';
import { createRecordMaker, fieldNames } from './record-maker.ts';
import { FIRST_PAGE, linkedRequest, type PageAt, pageRequest } from './request.ts';
import { createRobotsCheck } from './robots-check.ts';
import { SourceError } from './source-error.ts';

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
  /** What must not be told; more is added to it. */
  hidden?: Hidden;
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
  const hidden = input.hidden ?? createHidden();
  const discreet: SourceDeps = {
    ...deps,
    log: (level, text) => deps.log(level, hidden.mask(text)),
    onPage: (pages, url) => deps.onPage(pages, hidden.mask(url)),
  };
  try {
    return yield* readAll({ ...input, hidden }, discreet);
  } catch (error) {
    throw hidden.masked(error);
  }
}

async function* readAll(
  input: SourceInput & { hidden: Hidden },
  deps: SourceDeps,
): AsyncGenerator<string[], SourceEnd> {
  const { source } = input;
  const now = deps.now ?? Date.now;
  const kept = readState(input.state);
  const memory = trackState(source.remember, kept, new Date(now()).toISOString());
  const conditional = createConditionalRequests(source, kept, input.definitionHash);
  const fills = deps.fills ?? countFills(fieldNames(source));
  const { exchange, wait } = connect(source, { ...deps, now, hidden: input.hidden }, memory.values);
  const firstRequest = (start: string) =>
    pageRequest(source, start, createPager(source.paginate).first, memory.values);
  let pages = 0;
  const pageDeps: PageDeps = {
    source,
    conditional,
    exchange,
    fills,
    maker: createRecordMaker(source, memory, fills),
    state: memory.values,
    signal: deps.signal,
    log: deps.log,
    wait,
    onPage(url) {
      pages += 1;
      deps.onPage(pages, url);
    },
  };

  // What has not changed is read all the same once something else has: a run brings everything.
  const unchanged: string[] = [];
  for (const start of source.urls) {
    if (!(yield* readPages(start, pageDeps, deps.mostPages ?? DEFAULT_MAX_PAGES))) unchanged.push(start);
  }
  const changed = unchanged.length < source.urls.length;
  for (const start of changed ? unchanged : []) {
    conditional.forget(firstRequest(start).url);
    yield* readPages(start, pageDeps, deps.mostPages ?? DEFAULT_MAX_PAGES);
  }

  for (const sentence of [...fills.sentences(), ...memory.sentences()]) deps.log('warn', sentence);
  const values = memory.next();
  const answers = conditional.next();
  return {
    state: {
      ...(Object.keys(values).length === 0 ? {} : { values }),
      ...(answers === undefined ? {} : { answers }),
    },
    unchanged: !changed,
    guard: fills.mistake(source.filled),
    fills,
    pages,
  };
}

/** A start URL with its further pages. Answers whether anything was read: false when nothing has changed. */
async function* readPages(
  start: string,
  deps: PageDeps,
  mostPages: number,
): AsyncGenerator<string[], boolean> {
  const { source, state } = deps;
  const pager = createPager(source.paginate);
  const maxPages = source.paginate?.maxPages ?? null;
  let at: PageAt = pager.first;
  let url: string | undefined;
  for (let count = 1; ; count++) {
    const request =
      url === undefined ? pageRequest(source, start, at, state) : linkedRequest(source, url, state);
    const accepted = pager.numbered && count > 1 ? [404, 410] : [];
    const page = yield* readPage(request, { digests: pager.digests, accepted }, deps);
    if (page === 'unchanged' && count > 1) {
      // Only headers of the definition's own can have asked for it.
      throw new SourceError(`${request.url} answered 304 Not Modified, and the page before it has been read`);
    }
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

/** Puts together what asks. */
function connect(
  source: HttpSource,
  deps: SourceDeps & { now(): number; hidden: Hidden },
  state: ReadonlyMap<string, string>,
) {
  const pace = { perHost: source.perHost, delayMs: source.delayMs };
  const clientDeps: ClientDeps = {
    ...deps,
    pace,
    // A definition that was applied before this setting has none.
    answerMs: source.answerMs ?? null,
    cookies: source.cookies ? createCookieJar() : undefined,
    trusted: new Set(
      source.urls.map((url) => new URL(pageRequest(source, url, FIRST_PAGE, state).url).origin),
    ),
    wait: deps.wait ?? ((ms, signal) => pause(ms, undefined, { signal })),
    random: deps.random ?? Math.random,
  };
  const client = (deps.connect ?? createClient)(clientDeps);
  // Tokens come from a host of their own, which learns nothing of the requests.
  const trusted = new Set(source.auth?.type === 'oauth2' ? [new URL(source.auth.tokenUrl).origin] : []);
  const tokens = createClient({ ...clientDeps, trusted });
  const robots = createRobotsCheck({
    setting: source.robots,
    parse: source.parse,
    agent: deps.agent,
    client,
    slowDown: deps.turns.slowDown,
  });
  const auth = createAuthorization(source.auth, { client: tokens, hidden: deps.hidden, now: deps.now });
  const warn = (text: string) => deps.log('warn', text);
  return { exchange: createExchange({ source, client, auth, robots, warn }), wait: clientDeps.wait };
}
