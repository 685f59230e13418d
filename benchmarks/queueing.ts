/** How long queue calls take while something else runs. */
import { Pool } from 'undici';
import type { Flowhook } from './flowhook.ts';

/** The interval of calls. Their jobs wait, because another job takes the slot. */
const CALL_EVERY_MS = 20;

/** Workflows to call, each for one job. */
export function callees(count: number): Record<string, string> {
  const text = 'expect: { records: { min: 0 } }\nsource: { type: command, command: ["true"] }\n';
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`default/w${n}.yaml`, text]));
}

/** Runs `act` and measures queue calls meanwhile, one workflow after another, starting at `from`. */
export async function whileQueueing<T>(
  { url, headers }: Flowhook,
  from: { next: number },
  act: () => Promise<T>,
): Promise<{ result: T; p50Ms: number; p99Ms: number; calls: number; seconds: number }> {
  const pool = new Pool(url, { connections: 4 });
  const took: number[] = [];
  let going = true;
  const queueing = (async () => {
    while (going) {
      const path = `/v1/workflows/w${from.next++}/queue`;
      const sent = performance.now();
      const response = await pool.request({ method: 'POST', path, headers });
      await response.body.dump();
      if (response.statusCode !== 200 && response.statusCode !== 400)
        throw new Error(`${path}: ${response.statusCode}`);
      took.push(performance.now() - sent);
      await new Promise((later) => setTimeout(later, CALL_EVERY_MS));
    }
  })();
  const began = performance.now();
  try {
    const result = await act();
    const seconds = (performance.now() - began) / 1_000;
    going = false;
    await queueing;
    took.sort((a, b) => a - b);
    const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0;
    return { result, p50Ms: at(0.5), p99Ms: at(0.99), calls: took.length, seconds };
  } finally {
    going = false;
    await pool.close();
  }
}
