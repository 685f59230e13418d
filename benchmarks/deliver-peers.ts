/** Other products that deliver webhooks and are already running: `--peer svix=http://host:8071` for each. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Contestant } from './benchmark.ts';
import { latencyAt } from './deliver-latency.ts';
import { OpenLoop, type RawRequest } from './open-loop.ts';
import { convoy } from './peers-by-url/convoy.ts';
import { hookaido } from './peers-by-url/hookaido.ts';
import { outpost } from './peers-by-url/outpost.ts';
import type { Peer } from './peers-by-url/peer.ts';
import { svix } from './peers-by-url/svix.ts';
import type { Sink } from './sink.ts';

const PEERS: Readonly<Record<string, Peer>> = { svix, convoy, outpost, hookaido };
const CONNECTIONS = 64;
const FOR_MS = 3_000;
/** How long to wait for accepted messages. */
const PATIENCE_MS = 60_000;
const RATE = 200;
/** About as long as a body of Flowhook. */
const FILLER = 'x'.repeat(400);

/**
 * @param given `name=url`
 * @throws Error if the name is unknown or the URL invalid
 */
export async function peerByUrl(given: string, sink: Sink): Promise<Contestant> {
  const [, name = '', url = ''] = /^(\w+)=(https?:\/\/.+?)\/?$/.exec(given) ?? [];
  const peer = PEERS[name];
  if (peer === undefined) {
    throw new Error(`--peer takes name=url, with ${Object.keys(PEERS).join(', ')} as names, not ${given}`);
  }
  const token = process.env[`FLOWHOOK_BENCH_${name.toUpperCase()}_TOKEN`] ?? '';
  const send = await peer({ url, token, endpoint: `${sink.url}/good/${name}` });
  const request = () => send(`{"timestamp":"${new Date().toISOString()}","filler":"${FILLER}"}`);
  return {
    name,
    async round() {
      const figures: Record<string, number> = { posted: await posted({ url, sink, request }) };
      const found = await latencyAt({
        url,
        sink,
        requests: [request],
        perSecond: RATE,
        warmMs: 500,
        forMs: FOR_MS,
      });
      for (const percentile of ['p50', 'p95', 'p99'] as const)
        figures[`${percentile} at ${RATE}/s`] = found[percentile];
      return figures;
    },
  };
}

/** Sends messages as fast as the API accepts them, and returns how many arrive per second. */
export async function posted(input: { url: string; sink: Sink; request: () => RawRequest }): Promise<number> {
  const { url, sink, request } = input;
  let taken = 0;
  let refused = 0;
  const loop = new OpenLoop({
    url,
    maxConnections: CONNECTIONS,
    next: request,
    onResponse({ status }) {
      if (status < 300) taken += 1;
      else refused += 1;
    },
  });
  await sink.take();
  try {
    await loop.warm();
    await loop.closed(CONNECTIONS, FOR_MS);
  } finally {
    loop.end();
  }
  if (refused > 0) throw new Error(`${refused} messages were refused, ${taken} accepted`);
  for (let waited = 0; waited < PATIENCE_MS && (await sink.count()) < taken; waited += 50) await pause(50);
  const { received, firstAt, lastAt } = await sink.take();
  if (received < taken) throw new Error(`${received} of ${taken} accepted messages arrived`);
  return received / ((lastAt - firstAt) / 1_000);
}
