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
const BAD = 5;
const CONNECTIONS = 64;
const FOR_MS = 3_000;
const WARM_MS = 500;
/** As for Flowhook, whose circuit breakers open in this time. */
const BAD_WARM_MS = 1_500;
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
  // Their paths contain `/bad/`, and their numbers follow those of the others.
  const badOnes = Array.from({ length: BAD }, (_, n) => `${part.url}/bad/${ENDPOINTS + n}`);
  const senders = await explained(peer, () =>
    peer.connect({ url, token, endpoints: [...endpoints, ...badOnes] }),
  );
  const requests = senders.map((send) => () => send(payload()));
  const [good, bad] = [requests.slice(0, ENDPOINTS), requests.slice(ENDPOINTS)];
  return { name, round: () => explained(peer, () => figuresOf({ url, sink: part, good, bad })) };
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
  good: readonly (() => RawRequest)[];
  bad: readonly (() => RawRequest)[];
}): Promise<Record<string, number>> {
  const { url, sink, good, bad } = input;
  const figures = { posted: await posted({ url, sink, request: good[0] as () => RawRequest }) };
  const steady = { url, sink, perSecond: RATE, forMs: FOR_MS };
  const found = await latencyAt({ ...steady, requests: good, warmMs: WARM_MS });
  if (found.paths < ENDPOINTS)
    throw new Error(`Only ${found.paths} of ${ENDPOINTS} endpoints received something`);
  sink.misbehave('hang');
  const requests = [...bad, ...good.slice(BAD)];
  const beside = await latencyAt({ ...steady, requests, bad: BAD, warmMs: BAD_WARM_MS }).finally(() =>
    sink.misbehave('none'),
  );
  const { p50, p95, p99 } = found;
  return {
    ...figures,
    [`p50 at ${RATE}/s`]: p50,
    [`p95 at ${RATE}/s`]: p95,
    [`p99 at ${RATE}/s`]: p99,
    [`p99 at ${RATE}/s, ${BAD} hang`]: beside.p99,
    [`arrived, ${BAD} hang`]: beside.arrivedPercent,
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
