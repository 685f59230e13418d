/**
 * Reads a whole source: its start URLs, the pages that follow each start URL, and the detail pages of the records.
 *
 *     start URLs ──▶ pages ──▶ records ──▶ fields ──▶ (detail page ──▶ more fields) ──▶ lines
 */
import { DEFAULT_MAX_PAGES, fieldNames, type HttpSource } from '../../model/http-source.ts';
import { MalformedError } from '../../std/lines.ts';
import { usefulPart } from '../process/harness-output.ts';
import { createRedactor, type Redactor } from '../secrets.ts';
import { type ConnectDeps, connectSource } from './exchange.ts';
import { countFills, type FillCount } from './fields.ts';
import { createConditionalRequests, readState, trackState } from './kept-state.ts';
import { createRecordMaker, type PageDeps, readPage } from './page.ts';
import { createPager } from './pages.ts';
import { linkedRequest, type PageAt, pageRequest, SourceError, UnreadableError } from './request.ts';

export interface SourceDeps extends ConnectDeps {
  /** Called after each page, with the number of pages read so far. */
  onPage(pages: number, url: string): void;
  /**
   * Maximum number of pages of one start URL (default: 10,000). More pages count as a loop, unless the definition sets
   * `maxPages`.
   */
  mostPages?: number;
  /** Counts filled fields. Pass it to read the counts before the end of the run. */
  fills?: FillCount;
}

interface SourceInput {
  source: HttpSource;
  /** The `SourceEnd.state` of the last published run. */
  state: unknown;
  /**
   * The hash of the current definition. Cache validators in the state that belong to another definition are ignored.
   */
  definitionHash: string;
  /** Masks secrets in log lines and errors. Credentials that are obtained during the run are added to this redactor. */
  redactor?: Redactor;
}

export interface SourceEnd {
  state: unknown;
  /** Whether all responses were 304, so that no records were read. */
  unchanged: boolean;
}

/**
 * Yields batches of lines, each the JSON text of one record.
 *
 * @throws SourceError, UnreadableError; the signal's reason
 */
export async function* readSource(input: SourceInput, deps: SourceDeps): AsyncGenerator<string[], SourceEnd> {
  const redactor = input.redactor ?? createRedactor();
  const masked: SourceDeps = {
    ...deps,
    log: (level, text) => deps.log(level, redactor.mask(text)),
    onPage: (pages, url) => deps.onPage(pages, redactor.mask(url)),
  };
  try {
    return yield* readAll({ ...input, redactor }, masked);
  } catch (error) {
    throw redactor.masked(error);
  }
}

async function* readAll(
  input: SourceInput & { redactor: Redactor },
  deps: SourceDeps,
): AsyncGenerator<string[], SourceEnd> {
  const { source } = input;
  const now = deps.now ?? Date.now;
  const kept = readState(input.state);
  const memory = trackState(source.remember, kept, new Date(now()).toISOString());
  const conditional = createConditionalRequests(source, kept, input.definitionHash);
  const fills = deps.fills ?? countFills(fieldNames(source));
  const { exchange, wait } = connectSource(source, { ...deps, redactor: input.redactor }, memory.values);
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

  // A run must yield all records. If at least one start URL has changed, the unchanged start URLs are read too.
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
  };
}

/**
 * Reads a start URL and the pages that follow it.
 *
 * @returns false if the start URL is unchanged and nothing was read
 */
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
      // Flowhook never makes this request conditional, so a header in the definition must have made it conditional.
      throw new SourceError(
        `${request.url} returned 304 Not Modified after the previous page was read. Remove the conditional header from \`source.headers\``,
      );
    }
    if (page === 'unchanged') return false;
    if (page === 'missing') return true;
    const next = pager.next(page);
    if ('end' in next) {
      if (next.warning !== undefined) deps.log('warn', next.warning);
      return true;
    }
    if (maxPages !== null && count >= maxPages) {
      deps.log('info', `There are more pages, but \`paginate.maxPages\` is ${maxPages}`);
      return true;
    }
    if (maxPages === null && count >= mostPages) {
      throw new SourceError(
        `${start} has more than ${mostPages} pages, which may be a loop. If it is not a loop, set \`paginate.maxPages\``,
      );
    }
    at = next.at;
    url = next.url;
  }
}

/** The result that the program writes to file descriptor 4. */
export type HarnessResult =
  | { ok: true; state: unknown; unchanged: boolean }
  | { ok: false; reason: 'source' | 'error'; error: string };

export async function outcomeOf(read: () => Promise<SourceEnd>): Promise<HarnessResult> {
  try {
    return { ok: true, ...(await read()) };
  } catch (error) {
    if (error instanceof SourceError || error instanceof UnreadableError || error instanceof MalformedError) {
      return { ok: false, reason: 'source', error: error.message };
    }
    return { ok: false, reason: 'error', error: usefulPart(error) };
  }
}
