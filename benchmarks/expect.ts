/** Ingesting records of twelve fields with and without expectations of each field. */
import type { Benchmark, Contestant } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { printing } from './people.ts';

const USUAL = 200_000;
const FULL = 1_000_000;

const SOURCE = 'source: { type: command, command: [node, products.mjs] }\nlimits: { timeout: 30m }\n';
/** Every record meets all of them. */
const EXPECT = `expect:
  records: { min: 1, max: 10000000, drop: 50%, rise: 200%, duplicates: 1% }
  fields:
    id: { type: text, filled: 100% }
    name: { type: text, min: 1, max: 200, filled: 98% }
    sku: { type: text, unique: true }
    url: { type: url, unique: true }
    price: { type: number, min: 0, filled: 98% }
    stock: { type: integer, min: 0, max: 1000 }
    state: { oneOf: [new, used, broken] }
    active: { type: boolean }
    email: { type: email, filled: 90% }
    added: { type: date, min: "2020-01-01" }
    seen: { type: datetime }
    city: { type: text, max: 100 }
`;

/** A product of about 290 bytes. */
const PRODUCT = `'{"id":"' + i + '","name":"Product Number ' + i + '","sku":"SKU-' + i + '-' + (i % 97) +
    '","url":"https://shop.example.org/products/' + i + '","price":' + (i % 9973) / 100 + ',"stock":' + i % 1000 +
    ',"state":"' + ['new', 'used', 'broken'][i % 3] + '","active":' + (i % 2 === 0) + ',"email":"seller' + i % 5000 +
    '@example.org","added":"2026-01-' + String(1 + i % 28).padStart(2, '0') + '","seen":"2026-11-' +
    String(1 + i % 28).padStart(2, '0') + 'T12:00:00Z","city":"City ' + i % 100 + '"}\\n'`;

const benchmark: Benchmark = {
  about:
    `${USUAL.toLocaleString('en')} records of twelve fields and about 290 bytes (${FULL.toLocaleString('en')} with ` +
    '--full), printed by a command. "first" publishes all of them durably; "unchanged" finds that all of them are ' +
    'already published. The expectations are about each of the fields, two of them with `unique`.',
  units: { first: '/s', unchanged: '/s', processor: 'µs per record', 'peak memory': 'MB' },
  limit: 'without expectations',
  async setUp({ full }) {
    const records = full ? FULL : USUAL;
    const contestant = (name: string, definition: string): Contestant => ({
      name,
      async round() {
        const flowhook = await startFlowhook({
          'default/products.yaml': definition,
          'default/products.mjs': printing(records, PRODUCT),
        });
        try {
          const rate = async () => {
            const from = performance.now();
            const { state, error } = await flowhook.runToItsEnd('products');
            if (state !== 'finished') throw new Error(error);
            return records / ((performance.now() - from) / 1_000);
          };
          const used = await flowhook.processorMs();
          const first = await rate();
          const processor = (((await flowhook.processorMs()) - used) * 1_000) / records;
          const unchanged = await rate();
          return { first, unchanged, processor, 'peak memory': (await flowhook.memory()).peakMb };
        } finally {
          await flowhook.stop();
        }
      },
    });
    return {
      contestants: [
        contestant('without expectations', SOURCE),
        contestant('with 12 fields', SOURCE + EXPECT),
      ],
      async tearDown() {},
    };
  },
};
export default benchmark;
