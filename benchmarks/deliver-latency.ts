/**
 * Measures the time from the timestamp of an event to its receipt, at a steady rate, for webhooks in turn. The timestamp of
 * Flowhook's events is the start of their transaction, so the commit counts but the request that causes the event does not.
 * Events of other products have the time of that request.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { OpenLoop, type RawRequest } from './open-loop.ts';
import type { Sink } from './sink.ts';

/** More would not help: a response takes a few milliseconds. */
const CONNECTIONS = 32;
/** Events that have not arrived this long after the last one count as lost. */
const PATIENCE_MS = 3_000;

export interface Latency {
  p50: number;
  p95: number;
  p99: number;
  slowest: number;
  /** The share of events to healthy endpoints that arrived. */
  arrivedPercent: number;
  /** Number of healthy endpoints that received something. */
  paths: number;
}

/**
 * @param input.requests functions that return the request for an event, one for each endpoint. A body may contain the time
 * @param input.bad the number of endpoints, at the start of the list, that misbehave and are not measured
 * @param input.warmMs how long events are sent before the measurement, while connections and circuit breakers open
 */
export async function latencyAt(input: {
  url: string;
  sink: Sink;
  requests: readonly (() => RawRequest)[];
  bad?: number;
  perSecond: number;
  warmMs: number;
  forMs: number;
}): Promise<Latency> {
  const { url, sink, requests, bad = 0, perSecond, warmMs, forMs } = input;
  let sent = 0;
  let healthy = 0;
  const refused: string[] = [];
  const loop = new OpenLoop({
    url,
    maxConnections: CONNECTIONS,
    next() {
      const index = sent++ % requests.length;
      if (index >= bad) healthy += 1;
      return (requests[index] as () => RawRequest)();
    },
    onResponse({ kind, status }) {
      if (status >= 300) refused.push(`${kind}: ${status}`);
    },
  });
  try {
    await loop.warm();
    await loop.at(perSecond, warmMs);
    await loop.drained();
    await come(sink, healthy);
    await sink.take();
    sent = 0;
    healthy = 0;
    await loop.at(perSecond, forMs);
    await loop.drained();
  } finally {
    loop.end();
  }
  if (refused.length > 0)
    throw new Error(`${refused.length} events were refused, the first by ${refused[0]}`);
  await come(sink, healthy);
  const { latenciesMs, received, paths } = await sink.take();
  // A lost event counts with the longest possible time.
  const at = (share: number) => latenciesMs[Math.ceil(healthy * share) - 1] ?? forMs + PATIENCE_MS;
  const arrivedPercent = (received / healthy) * 100;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), slowest: at(1), arrivedPercent, paths };
}

async function come(sink: Sink, count: number): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS && (await sink.count()) < count; waited += 50) await pause(50);
}

/** The bytes of a POST request. */
export function post(input: { url: string; headers: Record<string, string>; body?: string }): RawRequest {
  const { host, pathname } = new URL(input.url);
  const { headers, body = '' } = input;
  const lines = Object.entries({ host, ...headers, 'content-length': String(Buffer.byteLength(body)) });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return { kind: pathname, bytes: Buffer.from(`POST ${pathname} HTTP/1.1\r\n${head}\r\n${body}`) };
}
