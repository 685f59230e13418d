/** Queueing a job over HTTP, against a bare Fastify route with the same answer and headers. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLogger } from '../src/observe/log.ts';
import { openStore } from '../src/store/open.ts';
import type { Benchmark } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { hammer } from './load.ts';

const WORKFLOWS = 150_000;
const FOR_MS = 2_000;

const benchmark: Benchmark = {
  about:
    'POST …/queue of distinct workflows, each a durable commit, no job running meanwhile; ' +
    'the limit is a bare Fastify route that stores nothing.',
  units: { 'requests at 64': '/s', 'p99 at 64': 'ms', 'requests at 1': '/s', 'p99 at 1': 'ms' },
  limit: 'bare Fastify',
  async setUp() {
    // One held job fills the only slot for running ones, so that queueing alone is measured.
    const files = { 'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n' };
    const flowhook = await startFlowhook(files, { FLOWHOOK_MAX_RUNNING_JOBS: '1' });
    await makeWorkflows(flowhook.databaseUrl);
    await fetch(`${flowhook.url}/v1/workflows/holder/queue`, { method: 'POST', headers: flowhook.headers });
    const script = join(flowhook.directory, 'bare.mjs');
    await writeFile(script, BARE);
    const bare = fork(script, [import.meta.resolve('fastify')]);
    const [bareUrl] = (await once(bare, 'message')) as [string];
    let next = 0;
    let refused = 0;
    const measure = async (url: string, headers: Record<string, string>) => {
      const figures: Record<string, number> = {};
      for (const connections of [1, 64]) {
        const found = await hammer({
          url,
          connections,
          forMs: FOR_MS / (connections === 1 ? 4 : 1),
          request: () => ({ method: 'POST', path: `/v1/workflows/w${next++ % WORKFLOWS}/queue`, headers }),
          onStatus: (status) => {
            if (status !== 200) refused++;
          },
        });
        if (refused > 0)
          throw new Error(`${refused} calls were refused: there are too few workflows for this machine`);
        figures[`requests at ${connections}`] = found.perSecond;
        figures[`p99 at ${connections}`] = found.p99Ms;
      }
      return figures;
    };
    return {
      contestants: [
        {
          name: 'bare Fastify',
          round: async () => {
            const before = next;
            const figures = await measure(bareUrl, flowhook.headers);
            next = before;
            return figures;
          },
        },
        { name: 'flowhook', round: () => measure(flowhook.url, flowhook.headers) },
      ],
      async tearDown() {
        bare.kill();
        await flowhook.stop();
      },
    };
  },
};
export default benchmark;

/** Workflows as rows: so many files would only measure the file system. */
async function makeWorkflows(databaseUrl: string): Promise<void> {
  const store = await openStore(databaseUrl, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const teamId = (await store.teams.ensure({ slug: 'default' })).id;
  const [holder] = await store.workflows.list({ teamId });
  if (holder === undefined) throw new Error('The holder is missing');
  // More would wait longer for a connection to PostgreSQL than they may.
  for (let i = 0; i < WORKFLOWS; i += 200) {
    const some = Array.from({ length: 200 }, (_, j) => `w${i + j}`);
    await Promise.all(
      some.map((id) =>
        store.workflows.apply({ teamId, id, definition: holder.definition, hash: id, nextRunAt: null }),
      ),
    );
  }
  await store.close();
}

const BARE = `
const { default: fastify } = await import(process.argv[2]);
const app = fastify();
app.post('/v1/workflows/:workflowId/queue', (request, reply) => {
  reply.headers({ 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'r', 'x-job-id': 'job_01kadz8v3s7v0s8e1c3q5m2n4p', location: '/v1/jobs/job_01kadz8v3s7v0s8e1c3q5m2n4p' });
  return '{"message":"Job queued"}';
});
await app.listen({ port: 0, host: '127.0.0.1' });
process.send('http://127.0.0.1:' + app.server.address().port);
`;
