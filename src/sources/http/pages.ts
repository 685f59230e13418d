/** Finds the next page. Each type of pagination has a small state machine. */
import type { Paginate } from '../../model/http-source.ts';
import { linkTo } from '../../net/response-headers.ts';
import { compileText, textOfValue } from './fields.ts';
import type { Grammar } from './paths.ts';
import { FIRST_PAGE, type PageAt } from './request.ts';

/** What is known about a page after it was read. */
export interface PageRead {
  /** The URL after redirects. */
  url: string;
  /** The base URL of its links. */
  base: string;
  linkHeader: string | undefined;
  records: number;
  /** The digest of the page's records. Empty unless the pager needs `digests`. */
  digest: string;
  /** The response without its records, from `around` in `rows.ts`. */
  around: unknown;
  grammar: Grammar;
}

/**
 * Either the next page, with its `url` if the URL comes from a link, or the end of the pages, with an optional warning
 * for the log.
 */
type Next = { at: PageAt; url: string | undefined } | { end: true; warning?: string };

interface Pager {
  first: PageAt;
  /** Whether a 404 after the first page means that there are no more pages. */
  numbered: boolean;
  /** Whether `next` needs the digests of pages. They reveal a page that repeats the previous page. */
  digests: boolean;
  next(page: PageRead): Next;
}

/** Creates a pager for one start URL. */
export function createPager(paginate: Paginate | null): Pager {
  switch (paginate?.type) {
    case undefined:
      return { first: FIRST_PAGE, numbered: false, digests: false, next: () => ({ end: true }) };
    case 'cursor':
      return byCursor(paginate.param, paginate.from);
    case 'next_link':
      return byLink(({ around, base, grammar }) => {
        const { find } = compileText(paginate.from, grammar, { trim: true });
        const text = textOfValue(find(around)[0]);
        return text === '' ? undefined : (URL.parse(text, base)?.href ?? text);
      });
    case 'link_header':
      return byLink(({ linkHeader, url }) => {
        const target = linkTo('next', linkHeader);
        return target === undefined ? undefined : (URL.parse(target, url)?.href ?? target);
      });
    case 'page':
      return byNumber({
        start: paginate.start,
        step: 1,
        size: paginate.size,
        at: (page) => ({ params: { [paginate.param]: page }, page }),
      });
    case 'offset': {
      const { param, limit, limitParam } = paginate;
      const limits = limitParam === null ? {} : { [limitParam]: limit };
      return byNumber({
        start: paginate.start,
        step: limit,
        size: limit,
        at: (offset) => ({ params: { ...limits, [param]: offset }, page: undefined }),
      });
    }
    case 'until_empty':
      return byNumber({ start: paginate.start, step: 1, size: null, at: (page) => ({ params: {}, page }) });
  }
}

const LAST_PAGE = 'no further pages are read';

function byCursor(param: string, from: string): Pager {
  const seen = new Set<string>();
  return {
    first: FIRST_PAGE,
    numbered: false,
    digests: false,
    next({ around, grammar }) {
      const value = compileText(from, grammar, { trim: true }).find(around)[0];
      const cursor = value === false ? '' : textOfValue(value);
      if (cursor === '') return { end: true };
      if (seen.has(cursor))
        return { end: true, warning: `The cursor ${cursor.slice(0, 80)} was returned twice: ${LAST_PAGE}` };
      seen.add(cursor);
      return {
        at: { params: { [param]: typeof value === 'number' ? value : cursor }, page: undefined },
        url: undefined,
      };
    },
  };
}

function byLink(linkOf: (page: PageRead) => string | undefined): Pager {
  const seen = new Set<string>();
  return {
    first: FIRST_PAGE,
    numbered: false,
    digests: false,
    next(page) {
      seen.add(withoutHash(page.url));
      const link = linkOf(page);
      if (link === undefined) return { end: true };
      if (!/^https?:/.test(link))
        return {
          end: true,
          warning: `The link to the next page (${link.slice(0, 80)}) is not an HTTP URL: ${LAST_PAGE}`,
        };
      const url = withoutHash(link);
      if (seen.has(url))
        return { end: true, warning: `The link to the next page leads back to ${url}: ${LAST_PAGE}` };
      seen.add(url);
      return { at: FIRST_PAGE, url };
    },
  };
}

function byNumber(input: {
  start: number;
  step: number;
  size: number | null;
  at(number: number): PageAt;
}): Pager {
  let number = input.start;
  let before: string | undefined;
  return {
    first: input.at(input.start),
    numbered: true,
    digests: true,
    next({ records, digest, url }) {
      if (records === 0 || (input.size !== null && records < input.size)) return { end: true };
      if (digest === before) {
        return { end: true, warning: `${url} has the same records as the previous page: ${LAST_PAGE}` };
      }
      before = digest;
      number += input.step;
      return { at: input.at(number), url: undefined };
    },
  };
}

function withoutHash(url: string): string {
  return url.split('#', 1)[0] as string;
}
