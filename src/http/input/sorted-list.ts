/**
 * Lists that callers can sort. The order is made from all matching rows, which are read in short pages: indexes by times
 * that change with each delivery would cost more than they save.
 */
import type { Order } from './list-page.ts';
import { idCursorFrom, makeIdCursor, refuseCursor } from './list-page.ts';
import { choiceParameter, type QueryParameter, queryValue } from './query.ts';
import { isGeneratedId } from './values.ts';

type Key = string | number | null;

/** The place of a row: what it is sorted by, and its ID. */
export interface Place {
  key: Key;
  id: string;
}

/** The ways to sort a list, by the names of the parameter `sort`. A `-` before the name reverses the order. */
export class Sorting<Row extends { id: string }, Name extends string> {
  readonly #keys: Readonly<Record<Name, (row: Row) => Key>>;
  readonly parameter: QueryParameter<Name | `-${Name}`>;
  /** The place of the last row of a page. Without `sort`, the list is sorted by ID. */
  readonly order: Order<Row, 'after', Place>;

  /** @param prefix of the IDs */
  constructor(prefix: string, keys: Readonly<Record<Name, (row: Row) => Key>>) {
    this.#keys = keys;
    const names = Object.keys(keys) as Name[];
    const all = [...names, ...names.map((name): `-${Name}` => `-${name}`)];
    this.parameter = choiceParameter(
      'sort',
      all,
      'Order of the list (default: oldest first). A `-` reverses it. Items without a value come last',
    );
    this.order = {
      as: 'after',
      of: (last, query = '') => {
        const sort = this.parameter.read(query);
        return sort === undefined
          ? makeIdCursor(last.id)
          : Buffer.from(JSON.stringify([sort, this.#keyOf(last, sort), last.id])).toString('base64url');
      },
      from: (query) => {
        const sort = this.parameter.read(query);
        if (sort !== undefined) return placeIn(query, sort);
        const id = idCursorFrom(query, (text) => isGeneratedId(prefix, text));
        return id === undefined ? undefined : { key: null, id };
      },
    };
  }

  /** The first `limit` rows in this order, after a place. Keeps only a few pages of rows in memory. */
  async first(
    rows: AsyncIterable<Row>,
    { sort, after, limit }: { sort: Name | `-${Name}`; after?: Place | undefined; limit: number },
  ): Promise<Row[]> {
    const found: { row: Row; place: Place }[] = [];
    const order = (one: Place, other: Place) => compare(one, other, sort.startsWith('-') ? -1 : 1);
    const cut = () => {
      found.sort((one, other) => order(one.place, other.place));
      found.splice(limit);
    };
    for await (const row of rows) {
      const place = { key: this.#keyOf(row, sort), id: row.id };
      if (after !== undefined && order(place, after) <= 0) continue;
      found.push({ row, place });
      if (found.length > 2 * limit + 100) cut();
    }
    cut();
    return found.map(({ row }) => row);
  }

  #keyOf(row: Row, sort: Name | `-${Name}`): Key {
    return this.#keys[sort.replace('-', '') as Name](row);
  }
}

function compare(one: Place, other: Place, direction: 1 | -1): number {
  if (one.key === null || other.key === null) {
    if (one.key !== other.key) return one.key === null ? 1 : -1;
  } else if (one.key !== other.key) {
    return one.key < other.key ? -direction : direction;
  }
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}

/** Longer than any cursor of a sorted list. */
const MAX_CURSOR = 2_000;

function placeIn(query: string, sort: string): Place | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = text.length > MAX_CURSOR ? undefined : JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    value = undefined;
  }
  if (!Array.isArray(value) || value.length !== 3 || value[0] !== sort) return refuseCursor();
  const [, key, id] = value as [string, unknown, unknown];
  const isKey = key === null || typeof key === 'string' || typeof key === 'number';
  return isKey && typeof id === 'string' ? { key, id } : refuseCursor();
}
