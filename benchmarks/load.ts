/** Requests over keep-alive connections: how many a second, and how long each took. */
import { Pool } from 'undici';

/** Sends as many requests as go through in a time, over a fixed number of connections. */
export async function hammer(input: {
  url: string;
  connections: number;
  forMs: number;
  request: (index: number) => { method: 'GET' | 'POST'; path: string; headers?: Record<string, string> };
  /** Called with each status; the body is dropped. */
  onStatus?: (status: number) => void;
}): Promise<{ perSecond: number; p50Ms: number; p99Ms: number }> {
  const pool = new Pool(input.url, { connections: input.connections, pipelining: 1 });
  const took: number[] = [];
  const from = performance.now();
  let index = 0;
  await Promise.all(
    Array.from({ length: input.connections }, async () => {
      while (performance.now() - from < input.forMs) {
        const sent = performance.now();
        const answer = await pool.request(input.request(index++));
        await answer.body.dump();
        took.push(performance.now() - sent);
        input.onStatus?.(answer.statusCode);
      }
    }),
  );
  const seconds = (performance.now() - from) / 1_000;
  await pool.close();
  took.sort((a, b) => a - b);
  const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0;
  return { perSecond: took.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}
