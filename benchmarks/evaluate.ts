/** The cost of evaluating filters on one core, compared with the same conditions as functions in JavaScript. */
import { compile, type Names, verdict } from '../src/model/expression.ts';
import { ComparedRecord } from '../src/webhooks/rules/compared-records.ts';
import type { Benchmark, Contestant } from './benchmark.ts';

const FOR_MS = 400;
/** Number of differences that take turns, so that no two evaluations in a row read the same texts. */
const DIFFERENCES = 1_000;

const event = {
  id: 'evt_01kadz8v3s7v0s8e1c3q5m2n4p',
  type: 'workflow_data_change',
  workflowId: 'shop',
  jobId: 'job_01kadz8v3s7v0s8e1c3q5m2n4p',
  timestamp: '2026-01-01T06:00:00.000Z',
  sequence: 42,
};
const data = { version: 2, records: { total: DIFFERENCES, added: 0, changed: DIFFERENCES, removed: 0 } };

// biome-ignore lint/suspicious/noExplicitAny: the functions read records like the filters, without types
type Fields = any;

/** Figure → a filter, and the same condition in JavaScript. */
const FILTERS: Record<string, { filter: string; inJavaScript: (names: Fields) => boolean }> = {
  'a field': {
    filter: 'record.price < 100',
    inJavaScript: ({ record }) => record.price < 100,
  },
  'five functions, five fields': {
    filter:
      'fallsBy(previous.price, record.price, "5%") && record.title.lowerAscii().contains("phone") && ' +
      '!crosses(previous.stock, record.stock, 1) && "price" in changed && size(record.tags) > 1 && ' +
      'record.seller.country in ["DE", "AT", "CH"]',
    inJavaScript: ({ record, previous, changed }) =>
      previous.price - record.price >= previous.price * 0.05 &&
      record.title.toLowerCase().includes('phone') &&
      previous.stock < 1 === record.stock < 1 &&
      changed.includes('price') &&
      record.tags.length > 1 &&
      ['DE', 'AT', 'CH'].includes(record.seller.country),
  },
  'a regular expression': {
    filter: 'record.title.matches("(?i)phone [0-9]+$")',
    inJavaScript: ({ record }) => /phone [0-9]+$/i.test(record.title),
  },
};
const FIGURES = Object.keys(FILTERS);

const benchmark: Benchmark = {
  about:
    `Filters over ${DIFFERENCES.toLocaleString('en')} changed records of 300 bytes, on one core. "with JSON": the texts of ` +
    'both states are parsed and compared first. The limit is a JavaScript function with the same condition, which neither ' +
    'checks types nor knows null rules.',
  units: Object.fromEntries(
    FIGURES.flatMap((name) => [
      [name, '/s'],
      [`${name}, with JSON`, '/s'],
    ]),
  ),
  limit: 'JavaScript',
  async setUp() {
    const texts = Array.from({ length: DIFFERENCES }, (_, at) => ({
      id: String(at),
      before: text(at, { price: 100 + (at % 50) }),
      after: text(at, { price: 90 + (at % 50) }),
    }));
    return {
      contestants: [
        contestant('JavaScript', texts, (name) => FILTERS[name]?.inJavaScript as (names: Names) => boolean),
        contestant('flowhook', texts, (name) => {
          const expression = compile(FILTERS[name]?.filter as string);
          return (names) => verdict(expression, names).matches;
        }),
      ],
      async tearDown() {},
    };
  },
};
export default benchmark;

function text(at: number, { price }: { price: number }): string {
  return JSON.stringify({
    id: String(at),
    title: `A durable phone ${at} with a long name, refurbished Phone ${at}`,
    price,
    currency: 'EUR',
    stock: 3 + (at % 7),
    tags: ['phone', 'refurbished', 'sale'],
    seller: { name: `Seller ${at % 20}`, country: ['DE', 'FR', 'AT'][at % 3], rating: 4.7 },
    url: `https://shop.example/products/${at}/a-durable-phone`,
    updatedAt: '2026-01-01T05:59:00.000Z',
  });
}

function contestant(
  name: string,
  texts: { id: string; before: string; after: string }[],
  filterOf: (figure: string) => (names: Names) => boolean,
): Contestant {
  const namesOf = (at: number): Names => ({
    event,
    data,
    ...new ComparedRecord(texts[at % DIFFERENCES] as (typeof texts)[number]).names,
  });
  return {
    name,
    async *round() {
      const parsed = texts.map((_, at) => namesOf(at));
      for (const figure of FIGURES) {
        const matches = filterOf(figure);
        yield { [figure]: perSecond((at) => matches(parsed[at % DIFFERENCES] as Names)) };
        yield { [`${figure}, with JSON`]: perSecond((at) => matches(namesOf(at))) };
      }
    },
  };
}

/** How often a function can be called in a second, and returns true at least once. */
function perSecond(call: (at: number) => boolean): number {
  let matched = 0;
  let count = 0;
  const from = performance.now();
  let passed = 0;
  while (passed < FOR_MS) {
    for (const until = count + 500; count < until; count += 1) if (call(count)) matched += 1;
    passed = performance.now() - from;
  }
  if (matched === 0) throw new Error('The filter never matches');
  return (count / passed) * 1_000;
}
