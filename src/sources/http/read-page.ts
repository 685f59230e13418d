/** Reads one page, and hands out its records while it is being read. */
import { createHash } from 'node:crypto';
import type { Follow, HttpSource, Parse } from '../../model/http-source.ts';
import { type Answer, discard } from './client.ts';
import type { ConditionalRequests } from './conditional-requests.ts';
import { type DetailDeps, withDetails } from './details.ts';
import { grammarOf, isMarkup } from './grammar.ts';
import { type Item, readItems } from './items.ts';
import { baseOf } from './markup.ts';
import type { PageRead } from './pages.ts';
import type { PageKind } from './record-maker.ts';
import type { HttpRequest } from './request.ts';
import { waitToReread } from './reread.ts';
import { SourceError } from './source-error.ts';

export interface PageDeps extends DetailDeps {
  source: HttpSource;
  conditional: ConditionalRequests;
}

/**
 * @param options.digests whether to compute a digest of its records
 * @param options.accepted statuses that mean that there is no such page
 * @returns what is known of the page; `unchanged` for 304, `missing` for an accepted status
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
    const answer = await exchange.ask({ ...request, headers }, options.accepted);
    if (answer.status === 304 || options.accepted.includes(answer.status)) {
      discard(answer);
      if (answer.status !== 304) return 'missing';
      conditional.unchanged(asked);
      return 'unchanged';
    }
    if (answer.status === 204) {
      discard(answer);
      return { ...nothing(answer), records: 0, digest: '' };
    }
    const read = yield* records(answer);
    deps.onPage(answer.url);
    conditional.read(asked, answer.headers);
    return read;
  }

  async function* records(answer: Answer): AsyncGenerator<string[], PageRead> {
    const body = await exchange.open(answer, source.parse);
    const { parse } = body;
    refuseBlindPaging(source, parse);
    const items = await readItems(body, source, { url: answer.url, parsed: deps.maker.parses });
    const base = isMarkup(parse) ? baseOf(items.around() as never, answer.url) : answer.url;
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
      ...nothing(answer),
      base,
      grammar: page.grammar,
      records: handedOut - before,
      digest: digest?.digest('base64') ?? '',
      around: items.around(),
    };
  }
}

function nothing({ url, headers }: Answer): Omit<PageRead, 'records' | 'digest'> {
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

/** These formats have nothing but records, so the next page would never be found in them. */
function refuseBlindPaging({ paginate }: HttpSource, parse: Parse): void {
  if (parse !== 'csv' && parse !== 'ndjson') return;
  if (paginate?.type !== 'cursor' && paginate?.type !== 'next_link') return;
  throw new SourceError(
    `The answer is ${parse}: nothing stands around its records that could be the ${paginate.type}`,
  );
}
