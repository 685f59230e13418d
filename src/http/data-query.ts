/** The query parameters of reading data, all optional. */

import { FORMATS, type Format } from '../records/formats.ts';
import type { Position } from '../records/select.ts';
import { grouped } from '../std/amounts.ts';
import type { ChangesCursor } from '../store/operations/records.ts';
import { cursorFrom, makeCursor } from './input/list-page.ts';
import { formatParameter, numberParameter, textParameter } from './input/query.ts';
import { invalid } from './input/values.ts';
import { acceptedFormat } from './negotiate.ts';
import type { Parameter } from './route.ts';

const DEFAULT_LIMIT = 1_000;
/** Records found by `q`. */
const MAX_HITS = 1_000;
const MAX_FIELDS = 200;

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

const DATA = {
  format: formatParameter(FORMATS),
  version: numberParameter('version', 'Another version than the newest'),
  fields: textParameter('fields', 'Names with commas between: only these fields, and `id`'),
  since: numberParameter('since', 'Only records added or changed after this version'),
  q: textParameter('q', `Only records that contain this text: the first ${grouped(MAX_HITS)}`, 200),
  limit: numberParameter(
    'limit',
    'At most so many records, fewer if they are large; `Link` leads to the next',
    { least: 1, most: 10_000 },
  ),
  cursor: textParameter('cursor', 'From the `Link` of the answer before; bound to its version'),
};
export const DATA_PARAMETERS: readonly Parameter[] = Object.values(DATA);

/** @throws Problem `field_invalid` or `path_invalid` for a known parameter with a bad value */
export function readDataQuery(query: string, accept: string | undefined): DataQuery {
  const format = DATA.format.read(query) ?? acceptedFormat(accept, FORMATS);
  const q = DATA.q.read(query);
  const since = DATA.since.read(query);
  if (q !== undefined && since !== undefined) {
    invalid('The query parameters `q` and `since` cannot be combined: leave one out');
  }
  const cursor = cursorFrom(query, since === undefined ? [2] : [4]);
  const version = DATA.version.read(query);
  if (cursor !== undefined && version !== undefined && version !== cursor[0]) {
    invalid('The query parameter `cursor` belongs to another `version`: leave one of them out');
  }
  const limit = DATA.limit.read(query) ?? (cursor === undefined ? undefined : DEFAULT_LIMIT);
  return {
    format,
    version: cursor?.[0] ?? version,
    only: fieldsFrom(query),
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

function fieldsFrom(query: string): string[] | null {
  const text = DATA.fields.read(query);
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
