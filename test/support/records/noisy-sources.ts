/** Sources whose records vary from run to run as real ones do, without a change that matters to anybody. */
import type { Mode } from '../../../src/model/workflow.ts';
import { seeded } from '../seeded.ts';

type Fields = Record<string, unknown>;

export interface NoisySource {
  name: string;
  mode: Mode;
  /** The records of the next run. */
  next(): Fields[];
}

/** One source of each kind, from a seed. */
export function noisySources(seed: number): NoisySource[] {
  return KINDS.map(({ name, mode, start }, at) => {
    const next = start(randomOf(seeded(seed * 1_000 + at)));
    return { name, mode, next };
  });
}

interface Random {
  /** In [0, 1). */
  share(): number;
  chance(share: number): boolean;
  below(bound: number): number;
  /** Normally distributed, with the mean 0 and the deviation 1. */
  normal(): number;
}

function randomOf(share: () => number): Random {
  return {
    share,
    chance: (bound) => share() < bound,
    below: (bound) => Math.floor(share() * bound),
    normal: () => Math.sqrt(-2 * Math.log(1 - share())) * Math.cos(2 * Math.PI * share()),
  };
}

const DAY_MS = 86_400_000;
const dayAfter = (days: number) => new Date(Date.UTC(2026, 0, 1) + days * DAY_MS).toISOString().slice(0, 10);
const times = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));

/** Keeps only the fields for which a chance is met. */
function some(random: Random, fields: Fields, shares: Readonly<Record<string, number>>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => random.chance(shares[key] ?? 1)));
}

function product(random: Random, id: number): Fields {
  return {
    id: `sku-${id}`,
    name: `Product ${id}`,
    // Some prices are unknown, and some happen to be whole.
    price: random.chance(0.02) ? null : random.below(20_000) / 100,
    stock: random.chance(0.1) ? '' : random.below(50),
    url: `https://shop.example/p/${id}`,
    address: random.chance(0.3) ? { city: 'Berlin', zip: random.chance(0.9) ? '10115' : null } : null,
    ...some(
      random,
      { discount: 10, ean: '4006381333931', note: 'new' },
      { discount: 0.1, ean: 0.6, note: 0.004 },
    ),
  };
}

const KINDS: readonly { name: string; mode: Mode; start(random: Random): () => Fields[] }[] = [
  {
    name: 'a catalog whose products come and go',
    mode: 'replace',
    start(random) {
      let id = 300;
      let products = times(300, (at) => product(random, at));
      return () => {
        products = products.filter(() => random.chance(0.97));
        while (products.length < 280 + random.below(40)) {
          id += 1;
          products.push(product(random, id));
        }
        return products;
      };
    },
  },
  {
    name: 'a catalog that grows by up to 3 % per run',
    mode: 'replace',
    start(random) {
      let count = 40;
      return () => {
        count = count > 600 ? 40 + count * 0.9 : count * (1 + 0.03 * random.share());
        return times(Math.round(count), (at) => product(random, at));
      };
    },
  },
  {
    name: 'a list with hours of the day: many at noon, few at night',
    mode: 'replace',
    start(random) {
      let hour = 0;
      return () => {
        hour += 1;
        const count = 200 * (1 + 0.8 * Math.sin((2 * Math.PI * hour) / 24)) + 10 * random.normal();
        return times(Math.max(0, Math.round(count)), (at) => product(random, at));
      };
    },
  },
  {
    name: 'a list that is about half as long at weekends',
    mode: 'replace',
    start(random) {
      let day = 0;
      return () => {
        day += 1;
        const count = (day % 7 < 5 ? 200 : 110) * Math.exp(0.1 * random.normal());
        return times(Math.round(count), (at) => product(random, at));
      };
    },
  },
  {
    name: 'a tiny list',
    mode: 'replace',
    start: (random) => () => times(random.below(12), (at) => product(random, at)),
  },
  {
    name: 'a list of about 20 records',
    mode: 'replace',
    start: (random) => () =>
      times(18 + random.below(8), (at) => ({
        ...product(random, at),
        ...some(random, { rare: 1, half: 'x' }, { rare: 0.03, half: 0.5 }),
      })),
  },
  {
    name: 'changes of very different sizes',
    mode: 'upsert',
    start: (random) => () =>
      times(Math.round(Math.exp(3.5 + 1.2 * random.normal())) % 900, (at) => product(random, at)),
  },
  {
    name: 'events of types that come in groups, each with its own fields',
    mode: 'append',
    start(random) {
      let run = 0;
      return () => {
        run += 1;
        return times(3 + random.below(10), () => random.below(4)).flatMap((type) =>
          times(5 + random.below(40), (at) => ({
            id: `${run}-${type}-${at}`,
            type: ['login', 'order', 'refund', 'visit'][type],
            at: `2026-01-01T10:00:${String(random.below(60)).padStart(2, '0')}Z`,
            ...(type === 1 ? { amount: random.below(9_999) / 100, items: [1] } : {}),
            ...(type === 2
              ? { amount: random.below(100), reason: random.chance(0.5) ? 'broken' : null }
              : {}),
            ...(type === 3
              ? { page: `/p/${at}`, referrer: random.chance(0.4) ? 'https://example.com/' : '' }
              : {}),
          })),
        );
      };
    },
  },
  {
    name: 'records with an object that maps days to values',
    mode: 'replace',
    start(random) {
      let day = 0;
      return () => {
        day += 1;
        return times(30, (at) => ({
          id: String(at),
          prices: Object.fromEntries(times(7, (back) => [dayAfter(day - back), random.below(100)])),
          history: Object.fromEntries(times(30, (back) => [dayAfter(day - back), random.below(100)])),
        }));
      };
    },
  },
  {
    name: 'a table whose columns are named after days',
    mode: 'replace',
    start(random) {
      let day = 0;
      return () => {
        day += 1;
        return times(30, (at) => ({
          id: String(at),
          ...Object.fromEntries(times(25, (back) => [dayAfter(day - back), random.below(100)])),
        }));
      };
    },
  },
  {
    name: 'a CSV file, in which everything is a text',
    mode: 'replace',
    start: (random) => () =>
      times(150 + random.below(10), (at) => ({
        id: String(at),
        price: random.chance(0.03) ? 'on request' : (random.below(9_999) / 100).toFixed(2),
        zip: random.chance(0.1) ? 'SW1A 1AA' : '10115',
        hex: random.below(2 ** 31).toString(16),
        phone: random.chance(0.5) ? '+49 30 1234' : '+49301234',
        since: random.chance(0.05) ? 'unknown' : dayAfter(at),
        empty: '',
      })),
  },
  {
    name: 'more fields than a profile lists, in any order',
    mode: 'replace',
    start: (random) => () => {
      const shift = random.below(230);
      return times(20, (at) => ({
        id: String(at),
        ...Object.fromEntries(times(230, (field) => [`f${(field + 230 - shift) % 230}`, 1])),
      }));
    },
  },
  {
    name: 'optional fields of every frequency',
    mode: 'upsert',
    start: (random) => () =>
      times(20 + random.below(300), (at) => ({
        id: String(at),
        ...some(
          random,
          Object.fromEntries(times(30, (field) => [`f${field}`, random.chance(0.9) ? field : 'x'])),
          Object.fromEntries(times(30, (field) => [`f${field}`, 0.7 ** field])),
        ),
      })),
  },
  {
    name: 'a field that is filled more and less often over time',
    mode: 'replace',
    start(random) {
      let share = 0.5;
      return () => {
        share = Math.min(1, Math.max(0, share + 0.015 * random.normal()));
        return times(400, (at) => ({ id: String(at), note: random.chance(share) ? 'x' : null }));
      };
    },
  },
  {
    name: 'pages that overlap, so that ids repeat',
    mode: 'replace',
    start: (random) => () =>
      times(200, () =>
        product(random, random.chance(0.02) ? random.below(10) : 10 + random.below(1_000_000)),
      ),
  },
];
