/** The query parameters of reading data, all optional. */
import { FORMATS, type Format } from '../records/formats.ts';
import type { Position } from '../records/select.ts';
import type { ChangesCursor } from '../store/operations/records.ts';
import { cursorFrom, makeCursor } from './input/list-page.ts';
import { invalid, queryNumber, queryText, queryValue } from './input/values.ts';
import { acceptedFormat } from './negotiate.ts';

const MAX_LIMIT = 10_000;
const DEFAULT_LIMIT = 1_000;
/** Records found by `q`. */
const MAX_HITS = 1_000;
const MAX_FIELDS = 200;
const MAX_Q = 200;

export interface DataQuery {
  format: Format;
  version: number | undefined;
  /** The fields to return; null for all. */
  only: readonly string[] | null;
  since: number | undefined;
  q: string | undefined;
  /** Undefined: everything. */
  limit: number | undefined;
  after: Position | undefined;
}

/** @throws Problem `field_invalid` or `path_invalid` for a known parameter with a bad value */
export function readDataQuery(query: string, accept: string | undefined): DataQuery {
  const format = queryFormat(query, FORMATS) ?? acceptedFormat(accept, FORMATS);
  const q = queryText(query, 'q', MAX_Q);
  const since = queryNumber(query, 'since', { least: 0 });
  if (q !== undefined && since !== undefined) {
    invalid('The query parameters `q` and `since` cannot be combined: leave one out');
  }
  const cursor = cursorFrom(query, since === undefined ? [2] : [4]);
  const version = queryNumber(query, 'version', { least: 0 });
  if (cursor !== undefined && version !== undefined && version !== cursor[0]) {
    invalid('The query parameter `cursor` belongs to another `version`: leave one of them out');
  }
  const asked = queryNumber(query, 'limit', { least: 1, most: MAX_LIMIT });
  const limit = asked ?? (cursor === undefined ? undefined : DEFAULT_LIMIT);
  return {
    format,
    version: cursor?.[0] ?? version,
    only: queryFields(query),
    since,
    q,
    limit: q === undefined ? limit : Math.min(limit ?? MAX_HITS, MAX_HITS),
    after: cursor && positionOf(cursor),
  };
}

/** The cursor of the next page, bound to its version. */
export function dataCursor(version: number, next: Position): string {
  if (typeof next === 'number') return makeCursor([version, next]);
  return makeCursor([version, next.part === 'written' ? 0 : 1, next.version, next.seq]);
}

/**
 * The format that the query names; undefined when it names none.
 *
 * @throws Problem `field_invalid` when it is none of `formats`
 */
export function queryFormat<F extends string>(query: string, formats: readonly F[]): F | undefined {
  const name = queryValue(query, 'format');
  const format = formats.find((one) => one === name);
  if (name !== undefined && format === undefined) {
    invalid(`The query parameter \`format\` must be one of ${formats.join(', ')}, or be left out`);
  }
  return format;
}

function queryFields(query: string): string[] | null {
  const text = queryValue(query, 'fields');
  if (text === undefined) return null;
  const fields = text.split(',');
  if (fields.length > MAX_FIELDS || fields.includes('')) {
    invalid(
      `The query parameter \`fields\` must be 1 to ${MAX_FIELDS} names with commas between, or be left out`,
    );
  }
  return fields;
}

function positionOf(cursor: readonly number[]): Position {
  const [, first = 0, version = 0, seq = 0] = cursor;
  if (cursor.length === 2) return first;
  const position: ChangesCursor = { part: first === 0 ? 'written' : 'removed', version, seq };
  return position;
}
