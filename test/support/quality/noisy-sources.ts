/** Sources whose records vary from run to run as real ones do, without a change that matters to anybody. */
import type { Mode } from '../../../src/model/workflow.ts';
import { Dice, dateOf } from './population.ts';

type Fields = Record<string, unknown>;

export interface NoisySource {
  name: string;
  mode: Mode;
  /** The records of the next run. */
  next(): Fields[];
}

/** One source of each kind, from a seed. */
export function noisySources(seed: number): NoisySource[] {
  return KINDS.map(({ name, mode = 'replace', start }, at) => {
    const recordsOf = start(new Dice(seed * 1_000 + at));
    let run = 0;
    return {
      name,
      mode,
      next() {
        run += 1;
        return recordsOf(run);
      },
    };
  });
}

const times = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));

/** Keeps only the fields for which a chance is met. */
function some(dice: Dice, fields: Fields, shares: Readonly<Record<string, number>>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => dice.chance(shares[key] ?? 1)));
}

function product(dice: Dice, id: number): Fields {
  return {
    id: `sku-${id}`,
    name: `Product ${id}`,
    // Some prices are unknown, and some happen to be whole.
    price: dice.chance(0.02) ? null : dice.below(20_000) / 100,
    stock: dice.chance(0.1) ? '' : dice.below(50),
    url: `https://shop.example/p/${id}`,
    address: dice.chance(0.3) ? { city: 'Berlin', zip: dice.chance(0.9) ? '10115' : null } : null,
    ...some(
      dice,
      { discount: 10, ean: '4006381333931', note: 'new' },
      { discount: 0.1, ean: 0.6, note: 0.004 },
    ),
  };
}

/** `start` returns a function that makes the records of each run, from 1. */
const KINDS: readonly { name: string; mode?: Mode; start(dice: Dice): (run: number) => Fields[] }[] = [
  {
    name: 'a catalog whose products come and go',
    start(dice) {
      let id = 300;
      let products = times(300, (at) => product(dice, at));
      return () => {
        products = products.filter(() => dice.chance(0.97));
        while (products.length < 280 + dice.below(40)) {
          id += 1;
          products.push(product(dice, id));
        }
        return products;
      };
    },
  },
  {
    name: 'a catalog that grows by up to 3 % per run',
    start(dice) {
      let count = 40;
      return () => {
        count = count > 600 ? 40 + count * 0.9 : count * (1 + 0.03 * dice.next());
        return times(Math.round(count), (at) => product(dice, at));
      };
    },
  },
  {
    name: 'a list with hours of the day: many at noon, few at night',
    start: (dice) => (hour) => {
      const count = 200 * (1 + 0.8 * Math.sin((2 * Math.PI * hour) / 24)) + 10 * dice.normal();
      return times(Math.max(0, Math.round(count)), (at) => product(dice, at));
    },
  },
  {
    name: 'a list that is about half as long at weekends',
    start: (dice) => (day) => {
      const count = (day % 7 < 5 ? 200 : 110) * Math.exp(0.1 * dice.normal());
      return times(Math.round(count), (at) => product(dice, at));
    },
  },
  {
    name: 'a tiny list',
    start: (dice) => () => times(dice.below(12), (at) => product(dice, at)),
  },
  {
    name: 'a list of about 20 records',
    start: (dice) => () =>
      times(18 + dice.below(8), (at) => ({
        ...product(dice, at),
        ...some(dice, { rare: 1, half: 'x' }, { rare: 0.03, half: 0.5 }),
      })),
  },
  {
    name: 'changes of very different sizes',
    mode: 'upsert',
    start: (dice) => () =>
      times(Math.round(Math.exp(3.5 + 1.2 * dice.normal())) % 900, (at) => product(dice, at)),
  },
  {
    name: 'events of types that come in groups, each with its own fields',
    mode: 'append',
    start: (dice) => (run) =>
      times(3 + dice.below(10), () => dice.below(4)).flatMap((type) =>
        times(5 + dice.below(40), (at) => ({
          id: `${run}-${type}-${at}`,
          type: ['login', 'order', 'refund', 'visit'][type],
          at: `2026-01-01T10:00:${String(dice.below(60)).padStart(2, '0')}Z`,
          ...(type === 1 ? { amount: dice.below(9_999) / 100, items: [1] } : {}),
          ...(type === 2 ? { amount: dice.below(100), reason: dice.chance(0.5) ? 'broken' : null } : {}),
          ...(type === 3
            ? { page: `/p/${at}`, referrer: dice.chance(0.4) ? 'https://example.com/' : '' }
            : {}),
        })),
      ),
  },
  {
    name: 'records with an object that maps days to values',
    start: (dice) => (day) =>
      times(30, (at) => ({
        id: String(at),
        prices: Object.fromEntries(times(7, (back) => [dateOf(day - back), dice.below(100)])),
        history: Object.fromEntries(times(30, (back) => [dateOf(day - back), dice.below(100)])),
      })),
  },
  {
    name: 'a table whose columns are named after days',
    start: (dice) => (day) =>
      times(30, (at) => ({
        id: String(at),
        ...Object.fromEntries(times(25, (back) => [dateOf(day - back), dice.below(100)])),
      })),
  },
  {
    name: 'a CSV file, in which everything is a text',
    start: (dice) => () =>
      times(150 + dice.below(10), (at) => ({
        id: String(at),
        price: dice.chance(0.03) ? 'on request' : (dice.below(9_999) / 100).toFixed(2),
        zip: dice.chance(0.1) ? 'SW1A 1AA' : '10115',
        hex: dice.below(2 ** 31).toString(16),
        phone: dice.chance(0.5) ? '+49 30 1234' : '+49301234',
        since: dice.chance(0.05) ? 'unknown' : dateOf(at),
        empty: '',
      })),
  },
  {
    name: 'more fields than a profile lists, in any order',
    start: (dice) => () => {
      const shift = dice.below(230);
      return times(20, (at) => ({
        id: String(at),
        ...Object.fromEntries(times(230, (field) => [`f${(field + 230 - shift) % 230}`, 1])),
      }));
    },
  },
  {
    name: 'optional fields of every frequency',
    mode: 'upsert',
    start: (dice) => () =>
      times(20 + dice.below(300), (at) => ({
        id: String(at),
        ...some(
          dice,
          Object.fromEntries(times(30, (field) => [`f${field}`, dice.chance(0.9) ? field : 'x'])),
          Object.fromEntries(times(30, (field) => [`f${field}`, 0.7 ** field])),
        ),
      })),
  },
  {
    name: 'a field that is filled more and less often over time',
    start(dice) {
      let share = 0.5;
      return () => {
        share = Math.min(1, Math.max(0, share + 0.015 * dice.normal()));
        return times(400, (at) => ({ id: String(at), note: dice.chance(share) ? 'x' : null }));
      };
    },
  },
  {
    name: 'pages that overlap, so that ids repeat',
    start: (dice) => () =>
      times(200, () => product(dice, dice.chance(0.02) ? dice.below(10) : 10 + dice.below(1_000_000))),
  },
];
