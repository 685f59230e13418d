/** Whole reads, compared with Fastify sending the same bytes from memory. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Benchmark, Contestant } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import { forked } from './forked.ts';
import { hammer } from './load.ts';
import { startNginx } from './nginx.ts';
import { people } from './people.ts';
import { startDurablePostgres } from './postgres.ts';
import { startReader } from './reader.ts';

const RECORDS = { '1 k': 1_000, '200 k': 200_000, '1 M': 1_000_000 } as const;
type Size = keyof typeof RECORDS;
/** Reads per round, one at a time. */
const READS: Record<Size, number> = { '1 k': 300, '200 k': 4, '1 M': 1 };
const READERS = 16;
/** A workflow whose records change in every round. */
const PUSHED = 'pushed';
const MANY = `200 k, ${READERS} readers`;
const NOT_MODIFIED_MS = 500;

const benchmark: Benchmark = {
  about:
    `GET …/data of records of about 95 bytes, by one reader or by ${READERS}, in a process that only copies ` +
    'and counts bytes. MB/s counts the JSON text, even if it is sent compressed. "identity", "gzip" and ' +
    '"zstd" are the encodings of the response. "first": the first read of a version, from the database. ' +
    '"again": later reads, from the file that the first read wrote (1,000 records: from memory). "next": the ' +
    'first read of a version whose body was built in advance, because the previous version had been read; ' +
    '"made after": how long after publication that body was ready. "304": conditional requests for unchanged ' +
    'data. "rows … through a schema": a Fastify route that serializes rows of a database with a response ' +
    'schema. The limit is Fastify sending the same bytes from memory.',
  units: {
    ...Object.fromEntries(
      Object.keys(RECORDS).flatMap((size) => [
        [size, 'MB/s'],
        [`${size}, first byte`, 'ms'],
        [`${size}, peak memory`, 'MB'],
      ]),
    ),
    [MANY]: 'MB/s',
    'made after': 'ms',
    '304': '/s',
  },
  limit: 'Fastify from memory',
  async setUp({ full }) {
    const large: Size[] = full ? ['200 k', '1 M'] : ['200 k'];
    const flowhook = await serving(['1 k', ...large]);
    const reader = startReader();
    const stops = [() => reader.stop(), () => flowhook.stop()];
    const bytes: Partial<Record<Size, number>> = {};
    for (const size of ['1 k', ...large] as const) {
      const response = await fetch(urlOf(flowhook, size), { headers: flowhook.headers });
      const body = Buffer.from(await response.arrayBuffer());
      await writeFile(fileOf(flowhook, size), body);
      bytes[size] = body.length;
    }

    async function read(options: ReadOptions): Promise<Record<string, number>> {
      const { size, url, headers, readers = 1, reads = 1, before } = options;
      const text = bytes[size] ?? 0;
      const found = { seconds: 0, firstMs: 0 };
      // If nothing runs before each read, all reads use one connection.
      const calls = before === undefined ? 1 : reads;
      for (let call = 0; call < calls; call++) {
        await before?.();
        const result = await reader.read({ url, headers, readers, reads: reads / calls });
        const isPlain = (headers['accept-encoding'] ?? 'identity') === 'identity';
        if (isPlain && result.bytes !== (text * readers * reads) / calls)
          throw new Error(`${url} sent ${result.bytes} bytes, not ${text} each time`);
        found.seconds += result.seconds;
        found.firstMs += result.firstMs / calls;
      }
      const rate = (text * readers * reads) / 1e6 / found.seconds;
      return readers > 1 ? { [MANY]: rate } : { [size]: rate, [`${size}, first byte`]: found.firstMs };
    }

    /** A server with prepared bodies. */
    const ready = (name: string, origin: string): Contestant => ({
      name,
      async round() {
        const urlOfSize = (size: Size) => `${origin}/${idOf(size)}`;
        const figures = await notModified(urlOfSize('200 k'), {});
        for (const size of ['1 k', ...large] as const)
          Object.assign(figures, await read({ size, url: urlOfSize(size), headers: {}, reads: READS[size] }));
        const many = await read({ size: '200 k', url: urlOfSize('200 k'), headers: {}, readers: READERS });
        return { ...figures, ...many };
      },
    });

    const ours = (of: Flowhook, name: string, encoding: string, sizes: readonly Size[]): Contestant[] => {
      const headers = { ...of.headers, 'accept-encoding': encoding };
      const withPeak = async (options: Omit<ReadOptions, 'url' | 'headers'>) => {
        await of.resetPeak();
        const figures = await read({ ...options, url: urlOf(of, options.size), headers });
        return { ...figures, [`${options.size}, peak memory`]: (await of.memory()).peakMb };
      };
      const many = { size: '200 k', url: urlOf(of, '200 k'), headers, readers: READERS } as const;
      return [
        {
          name: `${name}, ${encoding}, first`,
          async round() {
            const before = () => of.forgetBodies();
            const figures = await read({ ...many, before });
            for (const size of sizes)
              Object.assign(figures, await withPeak({ size, reads: READS[size], before }));
            return figures;
          },
        },
        {
          name: `${name}, ${encoding}, again`,
          async round() {
            const few = { size: '1 k', reads: READS['1 k'] } as const;
            const figures = await read({ ...few, url: urlOf(of, '1 k'), headers });
            for (const size of sizes) {
              await untilKept(urlOf(of, size), headers);
              Object.assign(figures, await withPeak({ size, reads: READS[size] }));
            }
            Object.assign(figures, await read(many));
            if (encoding !== 'identity') return figures;
            return { ...figures, ...(await notModified(urlOf(of, '200 k'), headers)) };
          },
        },
      ];
    };

    const files = (['1 k', ...large] as const).map((size) => fileOf(flowhook, size));
    const memory = await forked(new URL('./read-memory.ts', import.meta.url), files);
    stops.unshift(memory.stop);
    const contestants = [ready('Fastify from memory', memory.url)];
    const skipped: string[] = [];
    contestants.push(...ours(flowhook, 'flowhook', 'identity', large));
    for (const encoding of ['gzip', 'zstd'])
      contestants.push(...ours(flowhook, 'flowhook', encoding, ['200 k']));
    const plain = { ...flowhook.headers, 'accept-encoding': 'identity' };
    const next = `${flowhook.url}/v1/workflows/${PUSHED}`;
    const everyone = await readFile(fileOf(flowhook, '200 k'));
    await push(next, flowhook.headers, everyone);
    let pushes = 0;
    contestants.push({
      name: 'flowhook, identity, next',
      async round() {
        await untilKept(`${next}/data`, plain);
        const [person] = JSON.parse(everyone.toString('utf8', 0, everyone.indexOf('}') + 1).concat(']'));
        pushes += 1;
        // Same length as before.
        const city = `City ${pushes % 10}`;
        await push(next, flowhook.headers, JSON.stringify([{ ...person, city }]), '?mode=upsert');
        const from = performance.now();
        await untilThere(`${next}/data`, plain);
        const readyMs = performance.now() - from;
        return {
          ...(await read({ size: '200 k', url: `${next}/data`, headers: plain })),
          'made after': readyMs,
        };
      },
    });
    if (!full)
      skipped.push('1,000,000 records, nginx, rows through a response schema, PostgreSQL: with --full');
    else {
      const nginx = await startNginx(flowhook.directory);
      if (nginx === undefined) skipped.push('nginx: it is not installed');
      else {
        stops.unshift(nginx.stop);
        contestants.push(ready('nginx', nginx.url));
      }
      const postgres = await startDurablePostgres();
      stops.push(postgres.stop);
      const rows = { SQLite: flowhook.directory, PostgreSQL: await postgres.makeDatabase('rows') };
      for (const [name, where] of Object.entries(rows)) {
        const args = [where, fileOf(flowhook, '200 k')];
        const peer = await forked(new URL('./read-rows.ts', import.meta.url), args);
        stops.unshift(peer.stop);
        contestants.push({
          name: `rows of ${name} through a schema`,
          round: () => read({ size: '200 k', url: `${peer.url}/people`, headers: {} }),
        });
      }
      const onPostgres = await serving(['1 k', '200 k'], await postgres.makeDatabase('flowhook'));
      stops.unshift(() => onPostgres.stop());
      contestants.push(...ours(onPostgres, 'flowhook on PostgreSQL', 'identity', ['200 k']));
    }
    return {
      contestants,
      skipped,
      async tearDown() {
        for (const stop of stops) await stop();
      },
    };
  },
};
export default benchmark;

interface ReadOptions {
  size: Size;
  url: string;
  headers: Record<string, string>;
  readers?: number;
  reads?: number;
  /** Runs before each read. */
  before?: () => Promise<void>;
}

async function serving(sizes: readonly Size[], database?: string): Promise<Flowhook> {
  const files = sizes.flatMap((size) => [
    [`default/${idOf(size)}.yaml`, people.definition.replace('people.mjs', `${idOf(size)}.mjs`)],
    [`default/${idOf(size)}.mjs`, people.program(RECORDS[size])],
  ]);
  const pushed = { [`default/${PUSHED}.yaml`]: 'source: { type: push }\n' };
  const flowhook = await startFlowhook({ ...Object.fromEntries(files), ...pushed }, {}, database);
  for (const size of sizes) {
    const job = await flowhook.runToItsEnd(idOf(size));
    if (job.state !== 'finished') throw new Error(job.error);
  }
  return flowhook;
}

async function notModified(url: string, headers: Record<string, string>): Promise<Record<string, number>> {
  const head = await fetch(url, { headers });
  await head.arrayBuffer();
  const { pathname: path, origin } = new URL(url);
  const conditional = { ...headers, 'if-none-match': head.headers.get('etag') ?? '' };
  const { perSecond } = await hammer({
    url: origin,
    connections: READERS,
    forMs: NOT_MODIFIED_MS,
    request: () => ({ method: 'GET', path, headers: conditional }),
    onStatus: (status) => {
      if (status !== 304) throw new Error(`${url} returned ${status}, not 304`);
    },
  });
  return { '304': perSecond };
}

async function push(
  url: string,
  headers: Record<string, string>,
  body: string | Buffer<ArrayBuffer>,
  query = '',
): Promise<void> {
  const response = await fetch(`${url}/push${query}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  });
  if (response.status !== 200) throw new Error(await response.text());
}

/** Reads a body, and waits until it is cached. */
async function untilKept(url: string, headers: Record<string, string>): Promise<void> {
  await fetch(url, { headers }).then((response) => response.arrayBuffer());
  await untilThere(url, headers);
}

async function untilThere(url: string, headers: Record<string, string>): Promise<void> {
  for (;;) {
    const head = await fetch(url, { method: 'HEAD', headers });
    if (head.headers.has('content-length')) return;
    await new Promise((later) => setTimeout(later, 5));
  }
}

function idOf(size: Size): string {
  return `people-${RECORDS[size]}`;
}

function urlOf({ url }: Flowhook, size: Size): string {
  return `${url}/v1/workflows/${idOf(size)}/data`;
}

function fileOf({ directory }: Flowhook, size: Size): string {
  return join(directory, idOf(size));
}
