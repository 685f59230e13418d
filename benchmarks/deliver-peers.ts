/**
 * Other products that deliver webhooks and are already running: `--peer svix=http://host:8071` for each. The files of
 * `peers-by-url` say what each product needs; errors say so, too.
 */
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
/** As many as Flowhook has in this benchmark. */
const ENDPOINTS = 50;
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
  const part = sink.under(`/${name}`);
  const endpoints = Array.from({ length: ENDPOINTS }, (_, n) => `${part.url}/${n}`);
  const senders = await explained(peer, () => peer.connect({ url, token, endpoints }));
  const requests = senders.map((send) => () => send(payload()));
  return { name, round: () => explained(peer, () => figuresOf({ url, sink: part, requests })) };
}

function payload(): string {
  return `{"timestamp":"${new Date().toISOString()}","filler":"${FILLER}"}`;
}

/** Adds to an error what the product needs. */
async function explained<Result>({ needs }: Peer, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${(error as Error).message}. ${needs}`, { cause: error });
  }
}

async function figuresOf(input: {
  url: string;
  sink: Sink;
  requests: readonly (() => RawRequest)[];
}): Promise<Record<string, number>> {
  const { url, sink, requests } = input;
  const figures = { posted: await posted({ url, sink, request: requests[0] as () => RawRequest }) };
  const found = await latencyAt({ url, sink, requests, perSecond: RATE, warmMs: 500, forMs: FOR_MS });
  if (found.paths < requests.length)
    throw new Error(`Only ${found.paths} of ${requests.length} endpoints received something`);
  const { p50, p95, p99 } = found;
  return { ...figures, [`p50 at ${RATE}/s`]: p50, [`p95 at ${RATE}/s`]: p95, [`p99 at ${RATE}/s`]: p99 };
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
