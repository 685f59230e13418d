/**
 * `kill -9` at random moments while webhooks are delivered: before a commit and after it, in flight, after the
 * response, while settling. Deterministic: the invariants afterwards. Not deterministic: the moments.
 *
 * `WEBHOOK_CRASH_ROUNDS=100 node --test test/faults/webhook-crash.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { MAX_LIMIT } from '../../src/model/lane.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import {
  CRASHING_SERVER,
  crashingEnvironment,
  lived,
  maxLifeMs,
  queueAgainAndAgain,
  subscribe,
} from '../support/faults/crash.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';
import { testDatabase } from '../support/test-database.ts';

const ROUNDS = Number(process.env.WEBHOOK_CRASH_ROUNDS ?? 3);
const WORKFLOWS = ['a', 'b', 'c', 'd'];
const MAX_LIFE_MS = maxLifeMs(400);
/** Delays responses, so that requests are in flight at any moment. */
const MAX_ANSWER_MS = 20;

test(`kill -9 at ${ROUNDS} random moments loses no delivery, and repeats only unsettled ones`, {
  timeout: 600_000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-webhook-crash-'));
  const database = await testDatabase(directory);
  const environment = crashingEnvironment(directory, database);
  const files = join(directory, 'workflows', 'default');
  await mkdir(files, { recursive: true });
  for (const id of WORKFLOWS) {
    await writeFile(join(files, `${id}.yaml`), 'source: { type: command, command: ["true"] }\n');
  }
  const receivers = await Promise.all(
    WORKFLOWS.map(() => startReceiver({ delayMs: () => Math.random() * MAX_ANSWER_MS })),
  );
  /** By event: the number of kills at which its delivery was still waiting. */
  const waited = receivers.map(() => new Map<string, number>());
  const accepted = new Set<string>();
  let mostUnsettled = 0;

  let server = await startServerProcess(environment, CRASHING_SERVER);
  for (const [index, id] of WORKFLOWS.entries()) await subscribe(server, id, urlOf(receivers[index]));
  for (let round = 0; round < ROUNDS; round++) {
    const load = new AbortController();
    const working = WORKFLOWS.map((id) => queueAgainAndAgain(server, id, accepted, load.signal));
    await lived({ round, accepted, maxMs: MAX_LIFE_MS });
    await server.kill();
    load.abort();
    await Promise.all(working);
    await withStore(database.url, async (store, teamId) => {
      for (const [index, receiver] of receivers.entries()) {
        const waiting = await waitingFor(store, teamId, receiver);
        const times = waited[index] as Map<string, number>;
        for (const id of waiting) times.set(id, (times.get(id) ?? 0) + 1);
        const arrived = new Set(receiver.received.map(({ event }) => event.id));
        mostUnsettled = Math.max(mostUnsettled, waiting.filter((id) => arrived.has(id)).length);
      }
    });
    server = await startServerProcess(environment, CRASHING_SERVER);
  }

  // Every committed event that has a delivery, read from the database, must arrive.
  const due = await withStore(database.url, async (store, teamId) => {
    const events = await store.events.list({ teamId, afterSequence: 0, limit: 100_000 });
    return receivers.map((_, index) => events.filter(({ workflowId }) => workflowId === WORKFLOWS[index]));
  });
  for (const [index, receiver] of receivers.entries()) {
    const ids = due[index]?.map(({ id }) => id) ?? [];
    const all = (arrived: readonly { event: { id: string } }[]) => {
      const found = new Set(arrived.map(({ event }) => event.id));
      return ids.every((id) => found.has(id));
    };
    await receiver.until(all, `all ${ids.length} events of ${WORKFLOWS[index]}`, 60_000);
  }
  assert.equal(await server.stop(), 0, server.output());
  await Promise.all(receivers.map((receiver) => receiver.stop()));

  let requests = 0;
  let repeated = 0;
  for (const [index, receiver] of receivers.entries()) {
    const bodies = new Map(due[index]?.map(({ id, body }) => [id, body]));
    const counts = new Map<string, number>();
    for (const { headers, event, text } of receiver.received) {
      assert.equal(headers['webhook-id'], event.id);
      if (bodies.has(event.id)) assert.equal(text, bodies.get(event.id), 'the same id, the same bytes');
      counts.set(event.id, (counts.get(event.id) ?? 0) + 1);
    }
    for (const [id, count] of counts) {
      const kills = waited[index]?.get(id) ?? 0;
      assert.ok(count <= 1 + kills, `${id} arrived ${count} times, and was unsettled at ${kills} kills`);
      repeated += count - 1;
    }
    requests += receiver.received.length;
  }
  console.log(
    `${ROUNDS} kills, ${accepted.size} jobs accepted, ${requests} requests, ${repeated} of them repeated; ` +
      `at most ${mostUnsettled} of a webhook had arrived unsettled at a kill`,
  );
  assert.ok(accepted.size >= ROUNDS / 2, 'the load was real');
  // In flight, and as many again whose responses arrived while a batch was being written.
  assert.ok(mostUnsettled <= 4 * MAX_LIMIT, `${mostUnsettled} arrived but were not settled`);
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

function urlOf(receiver: Receiver | undefined): string {
  assert.ok(receiver);
  return receiver.url;
}

async function withStore<T>(url: string, act: (store: Store, teamId: string) => Promise<T>): Promise<T> {
  const store = await openStore(url, {
    own: false,
    publicUrl: () => '',
    log: silentLogger,
  });
  try {
    const team = await store.teams.bySlug({ slug: 'default' });
    return await act(store, team?.id ?? '');
  } finally {
    await store.close();
  }
}

/** The events with a waiting delivery. */
async function waitingFor(store: Store, teamId: string, { url }: Receiver): Promise<string[]> {
  const [webhook] = await store.webhooks.list({ teamId, url, limit: 100 });
  assert.ok(webhook);
  const at = { teamId, webhookId: webhook.id };
  const listed = await store.deliveries.list({ ...at, states: ['waiting'], limit: 10_000 });
  return listed.map(({ eventId }) => eventId);
}
