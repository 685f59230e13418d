/** For tests of lanes: a real store with the test's own clock, and real receivers on loopback. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { DeliveryState } from '../../../src/model/delivery.ts';
import type { WebhookSettings } from '../../../src/model/webhook.ts';
import { parseAllowNetworks } from '../../../src/net/address-policy.ts';
import { createTeamDispatchers } from '../../../src/net/dispatcher.ts';
import { createResolver } from '../../../src/net/resolver.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { createSealer } from '../../../src/std/seal.ts';
import { definition, failAttempt, makeRunning } from '../../../src/store/conformance/setup.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { DeliveryEngine } from '../../../src/webhooks/delivery-engine.ts';
import type { Mailing } from '../../../src/webhooks/mail/mailing.ts';
import { subscribeWebhook } from '../../../src/webhooks/subscribe.ts';

export interface Arrived {
  id: string;
  attempt: number;
  headers: Record<string, string>;
  path: string;
  body: string;
  response: ServerResponse;
}

/**
 * An endpoint that records requests. `respond` sends the response, immediately or later. Its path is random, because the
 * senders of another test may still call a port that was theirs: their requests are refused and not recorded.
 */
export async function endpoint(t: TestContext, respond: (arrived: Arrived) => void) {
  const arrived: Arrived[] = [];
  const waiting = new Set<() => void>();
  const path = `/hook-${randomBytes(8).toString('hex')}`;
  const server = createServer(async (request: IncomingMessage, response) => {
    if (request.url?.startsWith(path) !== true) return void response.writeHead(404).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = request.headers as Record<string, string>;
    const one: Arrived = {
      id: headers['webhook-id'] ?? '',
      attempt: Number(headers['webhook-attempt']),
      headers,
      path: request.url ?? '',
      body: Buffer.concat(chunks).toString(),
      response,
    };
    arrived.push(one);
    respond(one);
    for (const check of waiting) check();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${path}`,
    arrived,
    async until(count: number): Promise<void> {
      if (arrived.length >= count) return;
      const reached = Promise.withResolvers<void>();
      const check = () => {
        if (arrived.length >= count) reached.resolve();
      };
      waiting.add(check);
      await reached.promise;
      waiting.delete(check);
    },
  };
}

interface LaneOptions {
  /** The id of the sending node. A different node also has its own `store`. */
  nodeId?: string;
  store?: Store;
  stopGraceMs?: number;
  /** Default: the node cannot send mail. */
  mailing?: Mailing;
  onError?: (fields: unknown) => void;
}

/** A store, functions to make lanes, which are not started, and functions to make events for them. */
export async function setUp(
  t: TestContext,
  options: { wrap?: (store: Store) => Store; realTime?: boolean; databaseUrl?: string } = {},
) {
  const { wrap = (store) => store, realTime = false } = options;
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-lanes-'));
  let nowMs = Date.now();
  let elapsedMs = 0;
  const databaseUrl = options.databaseUrl ?? `sqlite:${join(directory, 'flowhook.db')}`;
  const open = () =>
    openStore(databaseUrl, {
      clock: () => (realTime ? Date.now() : nowMs),
      publicUrl: () => 'http://127.0.0.1',
      log: silentLogger,
      synchronous: 'OFF',
    });
  const store = wrap(await open());
  const sealer = createSealer(randomBytes(32));
  const policy = parseAllowNetworks('loopback');
  const resolver = createResolver();
  const dispatchers = createTeamDispatchers({ policy, resolver });
  const { id: teamId } = await store.teams.ensure({ slug: 'default' });
  await store.workflows.apply({ teamId, id: 'people', definition: definition(), hash: '1', nextRunAt: null });
  const at = { teamId, workflowId: 'people' };
  const newLanes = ({ onError, ...options }: LaneOptions = {}) =>
    new DeliveryEngine({
      store,
      sealer,
      dispatchers,
      log: onError === undefined ? silentLogger : { ...silentLogger, error: onError },
      observer: {},
      userAgent: 'flowhook/test',
      nodeId: 'node-a',
      random: () => 0.5,
      ...(realTime ? {} : { elapsed: () => elapsedMs }),
      ...options,
    });
  const lanes: DeliveryEngine[] = [];
  const others: Store[] = [];
  t.after(async () => {
    await dispatchers.destroy();
    await Promise.all(lanes.map((one) => one.stop()));
    await Promise.all([store, ...others].map((one) => one.close()));
    await rm(directory, { recursive: true });
  });
  return {
    store,
    sealer,
    teamId,
    /** Opens the database again, like another process. */
    async another(): Promise<Store> {
      const other = await open();
      others.push(other);
      return other;
    },
    lanes(options?: LaneOptions): DeliveryEngine {
      const made = newLanes(options);
      lanes.push(made);
      return made;
    },
    /** Moves the clock; back if negative. */
    advance(ms: number) {
      nowMs += ms;
      elapsedMs += Math.max(0, ms);
    },
    now: () => nowMs,
    async subscribe(
      url: string,
      events = ['workflow_queued'],
      settings: Partial<WebhookSettings> = {},
    ): Promise<string> {
      const deps = { store, sealer, policy, resolver, limit: 2_000 };
      const { id } = (await subscribeWebhook(deps, { ...at, url, events })).webhook;
      if (Object.keys(settings).length > 0) await store.webhooks.change({ teamId, id, settings });
      return id;
    },
    /** The number of a webhook's deliveries by state. */
    async states(webhookId: string): Promise<Partial<Record<DeliveryState, number>>> {
      const listed = await store.deliveries.list({ teamId, webhookId, limit: 1_000 });
      const counts: Partial<Record<DeliveryState, number>> = {};
      for (const { state } of listed) counts[state] = (counts[state] ?? 0) + 1;
      return counts;
    },
    /** Makes events: `workflow_queued`, `workflow_started` and `workflow_failed`, each `times` times. */
    async runs(times = 1): Promise<void> {
      for (let time = 0; time < times; time += 1) await failAttempt(store, await makeRunning(store, at));
    },
  };
}
