/** The whole read of 200,000 records, against Fastify sending the same bytes from memory. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import type { Benchmark, Contestant } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { people } from './people.ts';

const RECORDS = 200_000;

const benchmark: Benchmark = {
  about: `GET …/data of ${RECORDS.toLocaleString('en')} records, one reader; the limit is Fastify sending the same bytes from memory. MB are those of the JSON text; "again" comes from the file that the first read left.`,
  units: { 'whole read': 'MB/s', 'first byte': 'ms' },
  limit: 'Fastify from memory',
  async setUp() {
    const flowhook = await startFlowhook({
      'default/people.yaml': people.definition,
      'default/people.mjs': people.program(RECORDS),
    });
    const job = await flowhook.runToItsEnd('people');
    if (job.state !== 'finished') throw new Error(job.error);
    const path = '/v1/workflows/people/data';
    const bytes = Buffer.from(
      await (
        await fetch(flowhook.url + path, { headers: { ...flowhook.headers, 'accept-encoding': 'identity' } })
      ).arrayBuffer(),
    );
    const body = join(flowhook.directory, 'body.json');
    await writeFile(body, bytes);
    const script = join(flowhook.directory, 'memory.mjs');
    await writeFile(script, FROM_MEMORY);
    const memory = fork(script, [import.meta.resolve('fastify'), body]);
    const [memoryUrl] = (await once(memory, 'message')) as [string];
    const read = async (url: string, encoding: string, length?: number) => {
      const from = performance.now();
      const headers = { ...flowhook.headers, 'accept-encoding': encoding };
      const answer = await request(url + path, { headers });
      let first = 0;
      let got = 0;
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        if (first === 0) first = performance.now() - from;
        got += chunk.length;
      }
      if (length !== undefined && got !== length) throw new Error(`${got} bytes arrived, not ${length}`);
      return { 'whole read': bytes.length / 1e6 / ((performance.now() - from) / 1_000), 'first byte': first };
    };
    const forgetAll = () => flowhook.forgetBodies();
    const untilKept = async (encoding: string) => {
      const headers = { ...flowhook.headers, 'accept-encoding': encoding };
      for (;;) {
        const head = await request(flowhook.url + path, { method: 'HEAD', headers });
        await head.body.dump();
        if (head.headers['content-length'] !== undefined) return;
        await new Promise((later) => setTimeout(later, 5));
      }
    };
    const flowhookWith = (encoding: string, length?: number): Contestant[] => [
      {
        name: `flowhook, ${encoding}, first`,
        async round() {
          await forgetAll();
          return read(flowhook.url, encoding, length);
        },
      },
      {
        name: `flowhook, ${encoding}, again`,
        async round() {
          await untilKept(encoding);
          return read(flowhook.url, encoding, length);
        },
      },
    ];
    return {
      contestants: [
        { name: 'Fastify from memory', round: () => read(memoryUrl, 'identity', bytes.length) },
        ...flowhookWith('identity', bytes.length),
        ...flowhookWith('gzip'),
        ...flowhookWith('zstd'),
      ],
      async tearDown() {
        memory.kill();
        await flowhook.stop();
      },
    };
  },
};
export default benchmark;

const FROM_MEMORY = `
import { readFileSync } from 'node:fs';
const { default: fastify } = await import(process.argv[2]);
const body = readFileSync(process.argv[3]);
const app = fastify();
app.get('/v1/workflows/people/data', (request, reply) => reply.type('application/json; charset=utf-8').send(body));
await app.listen({ port: 0, host: '127.0.0.1' });
process.send('http://127.0.0.1:' + app.server.address().port);
`;
