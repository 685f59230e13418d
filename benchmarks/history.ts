/** History: how soon the first row of a query arrives, over 200 versions of 100,000 records. */

import type { Benchmark, Contestant } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import { DURABILITY, onBoth } from './postgres.ts';

const RECORDS = 100_000;
const VERSIONS = 200;
/** Changed in each version. Every tenth of them has another price, the others another stock. */
const CHANGED = 1_000;
const HISTORY_PAGE = 100;
/** Records of a second workflow. Each version changes all of them. */
const RATES = 2_000;

const benchmark: Benchmark = {
  about:
    `A workflow has ${VERSIONS} versions of ${RECORDS.toLocaleString('en')} records; each version changes ${CHANGED.toLocaleString('en')} of them, a tenth of these in the field price, the others in stock. ` +
    '"first row" and "all rows": the time until the first and the last byte of the changes since the time of the first version: all changes, only those of the price, only those of a field that a single record got in the last ' +
    'version (so that the first row is found last), and only removals (there are none). "record": a page of ' +
    `${HISTORY_PAGE} changes of a record that every version has changed. "page": ${RATES.toLocaleString('en')} records of a workflow whose ${VERSIONS} versions have each changed all of them. SQLite, or PostgreSQL (${DURABILITY}).`,
  units: {
    'first row, all fields': 'ms',
    'first row, price': 'ms',
    'first row, rare field': 'ms',
    'all rows, all fields': 'ms',
    'all rows, price': 'ms',
    'all rows, removals': 'ms',
    record: 'ms',
    page: 'ms',
  },
  setUp: ({ full }) => onBoth(full, contestant),
};
export default benchmark;

const KEPT = `source: { type: push }\nmode: upsert\nkeep: { versions: ${VERSIONS} }\n`;

/** @param database a PostgreSQL URL. Default: SQLite */
async function contestant(name: string, database?: string): Promise<Contestant & { stop(): Promise<void> }> {
  const flowhook = await startFlowhook(
    { 'default/prices.yaml': KEPT, 'default/rates.yaml': KEPT },
    {},
    database,
  );
  const since = await makeVersions(flowhook);
  const changes = (query: string) => timed(flowhook, `prices/changes?since=${since}&format=ndjson${query}`);
  return {
    name,
    async round() {
      const all = await changes('');
      const price = await changes('&type=changed&field=price');
      const rare = await changes('&field=discount');
      const removals = await changes('&type=removed');
      const record = await timed(flowhook, `prices/records/${idOf(0)}/history?limit=${HISTORY_PAGE}`);
      const page = await timed(flowhook, `rates/data?limit=${RATES}`);
      return {
        'first row, all fields': all.firstMs,
        'first row, price': price.firstMs,
        'first row, rare field': rare.firstMs,
        'all rows, all fields': all.allMs,
        'all rows, price': price.allMs,
        'all rows, removals': removals.allMs,
        record: record.allMs,
        page: page.allMs,
      };
    },
    stop: () => flowhook.stop(),
  };
}

const idOf = (n: number) => `product-${String(n).padStart(6, '0')}`;

/** Publishes all versions. Returns the time of the first. */
async function makeVersions(flowhook: Flowhook): Promise<string> {
  const lineOf = (n: number, price: number, stock: number, more = {}) =>
    JSON.stringify({
      id: idOf(n),
      title: `Product ${n}, in a box of ${n % 7}`,
      url: `https://shop.example/products/${n}`,
      category: `category-${n % 40}`,
      price,
      stock,
      ...more,
    });
  const push = async (lines: string[], workflow = 'prices') => {
    const headers = { ...flowhook.headers, 'content-type': 'application/x-ndjson' };
    const body = lines.join('\n');
    const sent = { method: 'POST', headers, body };
    const response = await fetch(`${flowhook.url}/v1/workflows/${workflow}/push`, sent);
    if (!response.ok) throw new Error(`push: ${response.status} ${await response.text()}`);
  };
  await push(Array.from({ length: RECORDS }, (_, n) => lineOf(n, n % 900, 0)));
  for (let version = 2; version <= VERSIONS; version++) {
    const lines = Array.from({ length: CHANGED }, (_, n) => {
      // Record 0 is in every version.
      const id = n === 0 ? 0 : 1 + ((version * 7_919 + n * 97) % (RECORDS - 1));
      const more = version === VERSIONS && n === 0 ? { discount: 5 } : {};
      return lineOf(id, (id % 900) + (n % 10 === 0 ? version : 0), version, more);
    });
    await push(lines);
  }
  for (let version = 1; version <= VERSIONS; version++) {
    await push(
      Array.from({ length: RATES }, (_, n) => lineOf(n, version, n)),
      'rates',
    );
  }
  const response = await fetch(`${flowhook.url}/v1/workflows/prices/versions?limit=1000`, {
    headers: flowhook.headers,
  });
  const { versions } = (await response.json()) as { versions: { publishedAt: string }[] };
  if (versions.length !== VERSIONS) throw new Error(`There are ${versions.length} versions`);
  return versions.at(-1)?.publishedAt ?? '';
}

async function timed(flowhook: Flowhook, path: string): Promise<{ firstMs: number; allMs: number }> {
  const from = performance.now();
  let firstMs = Number.NaN;
  const response = await fetch(`${flowhook.url}/v1/workflows/${path}`, { headers: flowhook.headers });
  if (!response.ok || response.body === null) throw new Error(`${path}: ${response.status}`);
  for await (const _ of response.body) if (Number.isNaN(firstMs)) firstMs = performance.now() - from;
  return { firstMs, allMs: performance.now() - from };
}
