/** Flowhook's part in the benchmark `deliver`: a service with endpoints at the sink, its load, and its figures. */
import { silentLogger } from '../src/observe/log.ts';
import { openStore } from '../src/store/open.ts';
import type { Contestant } from './benchmark.ts';
import { type Drained, drainBacklog } from './deliver-drain.ts';
import { latencyAt, post } from './deliver-latency.ts';
import { posted } from './deliver-peers.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import type { Misbehavior, Sink } from './sink.ts';

const MANY = 100;
export const RATES = [50, 200, 1_000];
/** Endpoints that receive events in turn. */
export const ENDPOINTS = 50;
const BAD = 5;
/** Events per second while some endpoints misbehave. */
const RATE = 200;
const MISBEHAVIORS: readonly Misbehavior[] = ['hang', 'drip', 'reset', 'return 500'];
const FOR_MS = 2_500;
const WARM_MS = 500;
/** Circuit breakers open in this time. */
const BAD_WARM_MS = 1_500;
const DEAD = 1_000;
const DEAD_EVENTS = 100;
/** TCP port 9 (discard), where nothing listens. */
const DEAD_URL = 'http://127.0.0.1:9';
/** More calls would time out on PostgreSQL while they wait for a connection. On SQLite they are one transaction. */
const AT_ONCE = 100;

const PERCENTILES = ['p50', 'p95', 'p99'] as const;
export const LATENCIES: Record<string, string> = Object.fromEntries(
  RATES.flatMap((rate) => PERCENTILES.map((name) => [`${name} at ${rate}/s`, 'ms'])),
);

/** The unit of each figure. */
export const FIGURES: Record<string, string> = {
  'to 1': '/s',
  'to 1, processor': 'µs each',
  'to 100': '/s',
  'to 100, processor': 'µs each',
  posted: '/s',
  ...LATENCIES,
  ...Object.fromEntries(
    MISBEHAVIORS.flatMap((how) => [
      [`p99 at ${RATE}/s, ${BAD} ${how}`, 'ms'],
      [`arrived, ${BAD} ${how}`, '%'],
    ]),
  ),
};

export interface Ours extends Contestant {
  /** The body of one of its deliveries. */
  body: string;
  stop(): Promise<void>;
}

/**
 * @param input.full whether endpoints misbehave in every way, not only by hanging
 * @param input.database a PostgreSQL URL. Default: SQLite
 * @param input.posted whether to also measure events sent through the API, as with other products
 */
export async function ourDeliveries(input: {
  name: string;
  sink: Sink;
  deliveries: number;
  full: boolean;
  database?: string;
  posted?: boolean;
}): Promise<Ours> {
  const { name, sink, deliveries, full, database } = input;
  // A job that never ends takes the only slot, so that the jobs that cause events never run.
  const flowhook = await startFlowhook(WORKFLOWS, { FLOWHOOK_MAX_RUNNING_JOBS: '1' }, database);
  await flowhook.hold('holder');
  const store = await ownStore(flowhook);
  const teamId = (await store.teams.ensure({ slug: 'default' })).id;
  const ids = await subscribeAll(flowhook, MANY, (n) => `${sink.url}/good/${n}`);
  const good = ids.slice(0, ENDPOINTS).map((id) => testOf(flowhook, id));
  const first = ids[0] as string;
  const drain = (some: readonly string[], fill: () => Promise<void>) =>
    drainBacklog({ flowhook, store, sink, teamId, ids: some, deliveries, fill });
  await store.webhooks.test({ teamId, id: first });
  const [event] = await store.events.list({ teamId, afterSequence: 0, limit: 1 });
  return {
    name,
    body: event?.body ?? '',
    async round() {
      const figures = drainFigures(await drain([first], forOne), await drain(ids, forAll));
      Object.assign(figures, await latencies({ flowhook, sink, ids: ids.slice(0, ENDPOINTS), rates: RATES }));
      if (input.posted) {
        figures.posted = await posted({ url: flowhook.url, sink, request: testOf(flowhook, first) });
      }
      for (const how of full ? MISBEHAVIORS : MISBEHAVIORS.slice(0, 1)) {
        const { p99, arrivedPercent } = await besideBad(how);
        figures[`p99 at ${RATE}/s, ${BAD} ${how}`] = p99;
        figures[`arrived, ${BAD} ${how}`] = arrivedPercent;
      }
      return figures;
    },
    async stop() {
      await store.close();
      await flowhook.stop();
    },
  };

  async function forOne(): Promise<void> {
    for (let made = 0; made < deliveries; made += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => store.webhooks.test({ teamId, id: first })));
    }
  }

  /** Creates events that go to all endpoints. */
  async function forAll(): Promise<void> {
    for (let made = 0; made < deliveries; made += MANY) {
      const queued = await store.jobs.enqueue({
        teamId,
        workflowId: 'people',
        origin: 'api',
        idempotencyKey: null,
      });
      if (queued.outcome !== 'queued') throw new Error(`The job is ${queued.outcome}`);
      await store.jobs.cancel({ teamId, id: queued.job.id, by: 'the benchmark' });
    }
  }

  /** Uses new endpoints each time, because the service remembers the state of an endpoint. */
  async function besideBad(how: Misbehavior) {
    const bad = await subscribeAll(flowhook, BAD, (n) => `${sink.url}/bad/${n}`);
    sink.misbehave(how);
    const found = await latencyAt({
      url: flowhook.url,
      sink,
      requests: [...bad.map((id) => testOf(flowhook, id)), ...good.slice(BAD)],
      bad: BAD,
      perSecond: RATE,
      warmMs: BAD_WARM_MS,
      forMs: FOR_MS,
    });
    await store.webhooks.unsubscribe({ teamId, ids: bad });
    sink.misbehave('none');
    return found;
  }
}

/** Measures events for webhooks in turn, at each of the rates (events per second). */
export async function latencies(input: {
  flowhook: Flowhook;
  sink: Sink;
  ids: readonly string[];
  rates: readonly number[];
}): Promise<Record<string, number>> {
  const { flowhook, sink, ids, rates } = input;
  const requests = ids.map((id) => testOf(flowhook, id));
  const figures: Record<string, number> = {};
  for (const perSecond of rates) {
    const found = await latencyAt({
      url: flowhook.url,
      sink,
      requests,
      perSecond,
      warmMs: WARM_MS,
      forMs: FOR_MS,
    });
    for (const percentile of PERCENTILES) figures[`${percentile} at ${perSecond}/s`] = found[percentile];
  }
  return figures;
}

/** Measures events for healthy endpoints, beside many dead ones with a backlog. */
export async function deadEndpoints(sink: Sink): Promise<Contestant & { stop(): Promise<void> }> {
  const flowhook = await startFlowhook(WORKFLOWS, {
    FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW: String(ENDPOINTS + DEAD),
  });
  const store = await ownStore(flowhook);
  const teamId = (await store.teams.ensure({ slug: 'default' })).id;
  const ids = await subscribeAll(flowhook, ENDPOINTS, (n) => `${sink.url}/good/${n}`);
  const dead = await subscribeAll(flowhook, DEAD, (n) => `${DEAD_URL}/${n}`);
  for (let event = 0; event < DEAD_EVENTS; event += 1) {
    for (let from = 0; from < DEAD; from += AT_ONCE) {
      const some = dead.slice(from, from + AT_ONCE);
      await Promise.all(some.map((id) => store.webhooks.test({ teamId, id })));
    }
  }
  await store.close();
  return {
    name: 'flowhook, 1,000 dead',
    async round() {
      const found = await latencyAt({
        url: flowhook.url,
        sink,
        requests: ids.map((id) => testOf(flowhook, id)),
        perSecond: RATE,
        warmMs: BAD_WARM_MS,
        forMs: FOR_MS,
      });
      return Object.fromEntries(PERCENTILES.map((name) => [`${name} at ${RATE}/s`, found[name]]));
    },
    stop: () => flowhook.stop(),
  };
}

export function drainFigures(to1: Drained, to100: Drained): Record<string, number> {
  return {
    'to 1': to1.perSecond,
    'to 1, processor': to1.processorUs,
    'to 100': to100.perSecond,
    'to 100, processor': to100.processorUs,
  };
}

export const WORKFLOWS = {
  'default/people.yaml': 'source: { type: command, command: ["true"] }\n',
  'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n',
};

/** Opens the service's database to fill it, which is not measured. */
function ownStore({ databaseUrl, url }: Flowhook) {
  return openStore(databaseUrl, {
    own: false,
    publicUrl: () => url,
    log: silentLogger,
    synchronous: 'OFF',
  });
}

/** Returns the ids of the new webhooks, in order. */
export async function subscribeAll(
  flowhook: Flowhook,
  count: number,
  urlOf: (n: number) => string,
): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await subscribe(flowhook, urlOf(ids.length)));
  return ids;
}

async function subscribe(flowhook: Flowhook, webhookUrl: string): Promise<string> {
  const response = await fetch(`${flowhook.url}/v1/integrations/webhooks/subscribe`, {
    method: 'POST',
    headers: { ...flowhook.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ workflowId: 'people', webhookUrl, events: ['workflow_queued'] }),
  });
  const id = response.headers.get('x-webhook-id');
  if (id === null) throw new Error(await response.text());
  await response.body?.cancel();
  return id;
}

/** Returns a function that returns the request for a test event of a webhook. */
function testOf({ url, headers }: Flowhook, id: string) {
  const request = post({ url: `${url}/v1/integrations/webhooks/${id}/test`, headers });
  return () => request;
}
