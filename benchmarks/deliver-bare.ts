/** The limit of deliveries: a loop with undici that posts similar bodies and headers, but signs and stores nothing. */
import { Pool } from 'undici';
import { type Drained, drained } from './deliver-drain.ts';
import type { Sink } from './sink.ts';

/** The maximum of a lane. With several endpoints, each has one connection. */
const CONNECTIONS = 16;

/** The headers of a delivery, so that requests are equally large. */
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

/** @param body the body of one of Flowhook's deliveries */
export async function bareLoop(input: {
  sink: Sink;
  endpoints: number;
  deliveries: number;
  body: string;
}): Promise<Drained> {
  const { sink, endpoints, deliveries, body } = input;
  await sink.take();
  const connections = Math.max(CONNECTIONS, endpoints);
  const { origin, pathname } = new URL(sink.url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const before = process.cpuUsage();
  let sent = 0;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (sent < deliveries) {
        const path = `${pathname}/good/${sent++ % endpoints}`;
        const response = await pool.request({ method: 'POST', path, headers: HEADERS, body });
        await response.body.dump();
      }
    }),
  );
  const { user, system } = process.cpuUsage(before);
  await pool.close();
  return drained(sink, deliveries, () => (user + system) / 1_000);
}
