/** How fast a backlog reaches one fast endpoint, against a bare loop of requests to the same. */
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { silentLogger } from '../src/observe/log.ts';
import { openStore } from '../src/store/open.ts';
import type { Benchmark } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { subscribe } from './isolation.ts';
import { type Sink, startSink } from './sink.ts';

const DELIVERIES = 50_000;
/** More would wait longer for a connection to PostgreSQL than they may. */
const AT_ONCE = 100;
/** As many as a lane has at most. */
const CONNECTIONS = 16;

const benchmark: Benchmark = {
  about:
    `${DELIVERIES.toLocaleString('en')} waiting deliveries to one endpoint, each signed, sent and written down durably; the ` +
    `limit is a loop with undici over ${CONNECTIONS} connections that sends as many bodies of the same kind with headers of ` +
    'the same kind to the same endpoint, signs nothing and keeps nothing.',
  units: { deliveries: '/s', processor: 'µs each' },
  limit: 'bare undici',
  async setUp() {
    const sink = await startSink();
    const flowhook = await startFlowhook({
      'default/people.yaml': 'source: { type: command, command: ["true"] }\n',
    });
    const id = await subscribe(flowhook, 'people', `${sink.url}/good`);
    const store = await openStore(flowhook.databaseUrl, {
      own: false,
      publicUrl: () => flowhook.url,
      log: silentLogger,
      synchronous: 'OFF',
    });
    const teamId = (await store.teams.ensure({ slug: 'default' })).id;
    let body = '';
    return {
      contestants: [
        {
          name: 'flowhook',
          async round() {
            await store.webhooks.pause({ teamId, id, reason: 'The benchmark fills it' });
            for (let made = 0; made < DELIVERIES; made += AT_ONCE) {
              await Promise.all(Array.from({ length: AT_ONCE }, () => store.webhooks.test({ teamId, id })));
            }
            const [event] = await store.events.list({ teamId, afterSequence: 0, limit: 1 });
            body = event?.body ?? '';
            await sink.take();
            const before = await flowhook.processorMs();
            await store.webhooks.resume({ teamId, id });
            const figures = await drained(sink);
            return { ...figures, processor: each((await flowhook.processorMs()) - before) };
          },
        },
        {
          name: 'bare undici',
          async round() {
            await sink.take();
            const before = process.cpuUsage();
            await bareLoop(sink.url, body);
            const { user, system } = process.cpuUsage(before);
            return { ...(await drained(sink)), processor: each((user + system) / 1_000) };
          },
        },
      ],
      async tearDown() {
        await store.close();
        await flowhook.stop();
        sink.stop();
      },
    };
  },
};
export default benchmark;

/** Between the first and the last receipt. */
async function drained(sink: Sink): Promise<Record<string, number>> {
  while ((await sink.count()) < DELIVERIES) await pause(50);
  const { received, firstAt, lastAt } = await sink.take();
  return { deliveries: received / ((lastAt - firstAt) / 1_000) };
}

/** Of milliseconds for all of them, microseconds for one. Steadier than a rate where others use the machine too. */
function each(ms: number): number {
  return (ms * 1_000) / DELIVERIES;
}

/** What a delivery carries, for requests that are as large and as hard to read as it. */
const HEADERS = {
  'accept-encoding': 'identity',
  'user-agent': 'flowhook/0.1.0',
  'content-type': 'application/json',
  'webhook-id': 'evt_01kag5z0rtz1y6f9v1jq7xcg4h',
  'webhook-timestamp': '1763696437',
  'webhook-signature': `v1,${'A'.repeat(43)}= v1a,${'A'.repeat(86)}==`,
  'webhook-event': 'webhook_test',
  'webhook-attempt': '1',
};

async function bareLoop(url: string, body: string): Promise<void> {
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 });
  let left = DELIVERIES;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) {
        const answer = await pool.request({ method: 'POST', path: '/good', headers: HEADERS, body });
        await answer.body.dump();
      }
    }),
  );
  await pool.close();
}
