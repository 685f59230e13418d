/**
 * Random filters in two forms: the expression that the service gets, and a plain function that says what it means. The
 * functions share no code with the service.
 */
import fc from 'fast-check';

export interface Item {
  id: string;
  price?: number | string | null | undefined;
  stock?: number | undefined;
}

/** What a filter reads. An event without differences has null instead of a difference. */
export interface Seen {
  workflowId: string | null;
  type: string;
  version: number | null;
  added: number | null;
  difference: { id: string; previous: Item | null; record: Item | null } | null;
}

/** A mistake is what comparing a text with a number returns. */
type Verdict = boolean | 'mistake';

export interface Filter {
  cel: string;
  readsRecord: boolean;
  holds(seen: Seen): Verdict;
}

/** Prices around the bounds below; 5 % of each is exact. */
export const PRICES = [0, 19, 20, 38, 40, 49.5, 50, 50.5, 76, 80, 95, 100];
const BOUNDS = [0, 20, 40, 50, 80];

type Side = 'record' | 'previous';
type Field = 'price' | 'stock';

function fieldOf(seen: Seen, side: Side, field: Field): Item[Field] | null {
  return seen.difference?.[side]?.[field] ?? null;
}

const ORDERS: Record<string, (a: number, b: number) => boolean> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};
const order = fc.constantFrom(...Object.keys(ORDERS));

function compared(sign: string, a: Item[Field] | null, b: Item[Field] | null): Verdict {
  if (a === null || b === null || a === undefined || b === undefined) return false;
  if (typeof a !== typeof b) return 'mistake';
  if (typeof a === 'string')
    return ORDERS[sign]?.(a < (b as string) ? -1 : a > (b as string) ? 1 : 0, 0) ?? false;
  return ORDERS[sign]?.(a, b as number) ?? false;
}

/** Compares a field with a bound, also after a calculation with an integer. */
const threshold: fc.Arbitrary<Filter> = fc
  .record({
    side: fc.constantFrom<Side>('record', 'previous'),
    field: fc.constantFrom<Field>('price', 'price', 'stock'),
    sign: order,
    bound: fc.constantFrom(...BOUNDS),
    doubled: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  })
  .map(({ side, field, sign, bound, doubled }) => ({
    cel: `${side}.${field}${doubled ? ' * 2' : ''} ${sign} ${bound}`,
    readsRecord: true,
    holds: (seen) => {
      const value = fieldOf(seen, side, field);
      if (doubled && typeof value === 'string') return 'mistake';
      return compared(sign, doubled && typeof value === 'number' ? value * 2 : value, bound);
    },
  }));

const betweenSides: fc.Arbitrary<Filter> = order.map((sign) => ({
  cel: `record.price ${sign} previous.price`,
  readsRecord: true,
  holds: (seen) => compared(sign, fieldOf(seen, 'record', 'price'), fieldOf(seen, 'previous', 'price')),
}));

const CROSSINGS: Record<string, (a: number, b: number, bound: number) => boolean> = {
  crosses: (a, b, bound) => (a < bound && bound <= b) || (a >= bound && bound > b),
  fallsBelow: (a, b, bound) => a >= bound && b < bound,
  risesAbove: (a, b, bound) => a <= bound && b > bound,
  fallsBy: (a, b, by) => a - b >= by,
  risesBy: (a, b, by) => b - a >= by,
  'fallsBy %': (a, b, percent) => a !== 0 && a - b >= (a * percent) / 100,
  'risesBy %': (a, b, percent) => a !== 0 && b - a >= (a * percent) / 100,
};

const crossing: fc.Arbitrary<Filter> = fc
  .record({
    name: fc.constantFrom(...Object.keys(CROSSINGS)),
    bound: fc.constantFrom(5, 20, 50),
  })
  .map(({ name, bound }) => ({
    cel: `${name.replace(' %', '')}(previous.price, record.price, ${name.endsWith('%') ? `"${bound}%"` : bound})`,
    readsRecord: true,
    holds: (seen) => {
      const a = fieldOf(seen, 'previous', 'price');
      const b = fieldOf(seen, 'record', 'price');
      if (a === null || b === null || a === undefined || b === undefined) return false;
      if (typeof a === 'string' || typeof b === 'string') return 'mistake';
      return CROSSINGS[name]?.(a, b, bound) ?? false;
    },
  }));

export function changeOf({ previous, record }: NonNullable<Seen['difference']>) {
  return previous === null ? 'added' : record === null ? 'removed' : 'changed';
}

/** The names of the fields that differ. */
export function changedFields({ previous, record }: NonNullable<Seen['difference']>): string[] {
  const keys = new Set([...Object.keys(previous ?? {}), ...Object.keys(record ?? {})]) as Set<keyof Item>;
  return [...keys].filter((key) => previous?.[key] !== record?.[key]).sort();
}

const ofRecord: fc.Arbitrary<Filter> = fc.constantFrom<Filter>(
  ...(['added', 'changed', 'removed'] as const).map((kind) => ({
    cel: `change == "${kind}"`,
    readsRecord: true,
    holds: ({ difference }: Seen) => difference !== null && changeOf(difference) === kind,
  })),
  ...['price', 'stock'].map((field) => ({
    cel: `"${field}" in changed`,
    readsRecord: true,
    holds: ({ difference }: Seen) => difference !== null && changedFields(difference).includes(field),
  })),
  { cel: 'id == "a"', readsRecord: true, holds: ({ difference }) => difference?.id === 'a' },
  {
    cel: 'record == null',
    readsRecord: true,
    holds: ({ difference }) => (difference?.record ?? null) === null,
  },
  {
    cel: 'previous != null',
    readsRecord: true,
    holds: ({ difference }) => (difference?.previous ?? null) !== null,
  },
  {
    cel: 'record.price == null',
    readsRecord: true,
    holds: (seen) => fieldOf(seen, 'record', 'price') === null,
  },
);

/** What an event says beside its records. */
const ofData: fc.Arbitrary<Filter> = fc.constantFrom<Filter>(
  { cel: 'data.version > 2', readsRecord: false, holds: ({ version }) => version !== null && version > 2 },
  { cel: 'data.records.added > 1', readsRecord: false, holds: ({ added }) => added !== null && added > 1 },
);

const ofEvent: fc.Arbitrary<Filter> = fc.constantFrom<Filter>(
  { cel: 'event.workflowId == "w0"', readsRecord: false, holds: ({ workflowId }) => workflowId === 'w0' },
  {
    cel: 'event.type == "workflow_data_change"',
    readsRecord: false,
    holds: ({ type }) => type === 'workflow_data_change',
  },
);

const plain = fc.oneof(
  { weight: 3, arbitrary: threshold },
  { weight: 3, arbitrary: crossing },
  { weight: 1, arbitrary: betweenSides },
  { weight: 3, arbitrary: ofRecord },
  { weight: 1, arbitrary: ofEvent },
);

function not(one: Filter): Filter {
  const holds = (seen: Seen) => {
    const held = one.holds(seen);
    return held === 'mistake' ? held : !held;
  };
  return { ...one, cel: `!(${one.cel})`, holds };
}

/** A mistake on one side does not count if the other side decides. */
function joined(sign: '&&' | '||', one: Filter, other: Filter): Filter {
  const decides = sign === '||';
  const holds = (seen: Seen): Verdict => {
    const both = [one.holds(seen), other.holds(seen)];
    if (both.includes(decides)) return decides;
    return both.includes('mistake') ? 'mistake' : !decides;
  };
  return {
    cel: `(${one.cel}) ${sign} (${other.cel})`,
    readsRecord: one.readsRecord || other.readsRecord,
    holds,
  };
}

const negated = fc.oneof(threshold, crossing, betweenSides, ofRecord, ofEvent).map(not);

/**
 * Filters of records do not read `data` here: at the end of cooldowns it is that of the newest event of the message, and
 * which records share a message depends on the moment.
 */
export const filter: fc.Arbitrary<Filter> = fc.oneof(
  { weight: 1, arbitrary: ofData },
  { weight: 5, arbitrary: plain },
  { weight: 1, arbitrary: negated },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom('&&' as const, '||' as const), plain, fc.oneof(plain, negated))
      .map(([sign, one, other]) => joined(sign, one, other)),
  },
);
