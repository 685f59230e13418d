/** What endpoints that misbehave cost the others: from the commit of an event to its receipt. */
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Benchmark } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import { type Misbehaviour, startSink } from './sink.ts';

const ENDPOINTS = 50;
const BAD = 5;
const PER_SECOND = 200;
const FOR_MS = 6_000;
/** Not measured: connections are made, and breakers open. */
const WARM_MS = 2_000;
const DEAD = 1_000;
const DEAD_EVENTS = 100;
/** Nothing listens there: TCP port 9 (discard). */
const DEAD_URL = 'http://127.0.0.1:9';

const benchmark: Benchmark = {
  about:
    `${PER_SECOND} events a second, each a durable commit, for ${ENDPOINTS} endpoints in turn, of which ${BAD} misbehave. Measured is the ` +
    `time from the commit to the receipt at the other ${ENDPOINTS - BAD}. "1,000 dead": no endpoint misbehaves, but ` +
    `${DEAD.toLocaleString('en')} more that refuse connections have ${(DEAD * DEAD_EVENTS).toLocaleString('en')} deliveries waiting.`,
  units: { p50: 'ms', p99: 'ms', slowest: 'ms', arrived: '%' },
  limit: 'undisturbed',
  async setUp() {
    const contestant = (name: string, how: Misbehaviour, dead = false) => ({
      name,
      round: () => round(how, dead),
    });
    return {
      contestants: [
        contestant('undisturbed', 'none'),
        contestant('5 hang', 'hang'),
        contestant('5 drip', 'drip'),
        contestant('5 reset', 'reset'),
        contestant('5 answer 500', 'answer 500'),
        contestant('1,000 dead', 'none', true),
      ],
      tearDown: async () => {},
    };
  },
};
export default benchmark;

async function round(how: Misbehaviour, dead: boolean): Promise<Record<string, number>> {
  const sink = await startSink();
  const flowhook = await startFlowhook({
    'default/people.yaml': 'source: { type: command, command: ["true"] }\n',
    'default/dead.yaml': 'source: { type: command, command: ["true"] }\n',
  });
  try {
    const ids: string[] = [];
    for (let n = 0; n < ENDPOINTS; n++) {
      const url = `${sink.url}/${n < BAD ? 'bad' : 'good'}/${n}`;
      ids.push(await subscribe(flowhook, 'people', url));
    }
    if (dead) await makeDead(flowhook);
    sink.misbehave(how);
    await sendEvents(flowhook, ids, WARM_MS);
    await pause(500);
    await sink.take();
    const sent = await sendEvents(flowhook, ids, FOR_MS);
    const healthy = sent.filter((index) => index >= BAD).length;
    for (let waited = 0; waited < 20 && (await sink.count()) < healthy; waited++) await pause(100);
    const { latenciesMs, received } = await sink.take();
    const at = (share: number) => latenciesMs[Math.floor((received - 1) * share)] ?? Number.NaN;
    return { p50: at(0.5), p99: at(0.99), slowest: at(1), arrived: (received / healthy) * 100 };
  } finally {
    await flowhook.stop();
    sink.stop();
  }
}

/** Answers the id of the new webhook. */
export async function subscribe(flowhook: Flowhook, workflowId: string, webhookUrl: string): Promise<string> {
  const answer = await fetch(`${flowhook.url}/v1/integrations/webhooks/subscribe`, {
    method: 'POST',
    headers: { ...flowhook.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ workflowId, webhookUrl, events: ['workflow_queued'] }),
  });
  const id = answer.headers.get('x-webhook-id');
  if (id === null) throw new Error(await answer.text());
  await answer.body?.cancel();
  return id;
}

/** Test events for one webhook after the other, at a steady rate; answers whom each was for. */
async function sendEvents(flowhook: Flowhook, ids: readonly string[], forMs: number): Promise<number[]> {
  const pool = new Pool(flowhook.url, { connections: 16 });
  const sent: number[] = [];
  const calls: Promise<void>[] = [];
  const from = performance.now();
  const count = (forMs / 1_000) * PER_SECOND;
  while (sent.length < count) {
    const due = Math.min(count, ((performance.now() - from) / 1_000) * PER_SECOND);
    while (sent.length < due) {
      const index = sent.length % ids.length;
      sent.push(index);
      const path = `/v1/integrations/webhooks/${ids[index]}/test`;
      calls.push(
        pool.request({ method: 'POST', path, headers: flowhook.headers }).then(async (answer) => {
          if (answer.statusCode >= 300) throw new Error(await answer.body.text());
          await answer.body.dump();
        }),
      );
    }
    await pause(1);
  }
  await Promise.all(calls);
  await pool.close();
  return sent;
}

async function makeDead(flowhook: Flowhook): Promise<void> {
  for (let n = 0; n < DEAD; n += 50) {
    const some = Array.from({ length: 50 }, (_, m) => subscribe(flowhook, 'dead', `${DEAD_URL}/${n + m}`));
    await Promise.all(some);
  }
  for (let event = 0; event < DEAD_EVENTS; event++) await flowhook.runToItsEnd('dead');
}
