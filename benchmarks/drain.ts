/** How fast a backlog reaches one fast endpoint, against a bare loop of requests to the same. */
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { silentLogger } from '../src/observe/log.ts';
import { openStore } from '../src/store/open.ts';
import { startFlowhook } from './flowhook.ts';
import { subscribe } from './isolation.ts';
import type { Benchmark } from './run.ts';
import { type Sink, startSink } from './sink.ts';

const DELIVERIES = 50_000;
/** More would wait longer for a connection to PostgreSQL than they may. */
const AT_ONCE = 100;
/** As many as a lane has at most. */
const CONNECTIONS = 16;

const benchmark: Benchmark = {
  about:
    `${DELIVERIES.toLocaleString('en')} waiting deliveries to one endpoint, each signed, sent and written down durably; the ` +
    `limit is a loop with undici over ${CONNECTIONS} connections that sends as many bodies of the same kind to the same ` +
    'endpoint and keeps nothing.',
  units: { deliveries: '/s' },
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
            await store.webhooks.resume({ teamId, id });
            return drained(sink);
          },
        },
        {
          name: 'bare undici',
          async round() {
            await sink.take();
            await bareLoop(sink.url, body);
            return drained(sink);
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

async function bareLoop(url: string, body: string): Promise<void> {
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 });
  let left = DELIVERIES;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) {
        const headers = { 'content-type': 'application/json' };
        const answer = await pool.request({ method: 'POST', path: '/good', headers, body });
        await answer.body.dump();
      }
    }),
  );
  await pool.close();
}
