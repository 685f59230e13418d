/**
 * `kill -9` of a service that decides what its webhooks receive: every match arrives, and none arrives in two messages.
 * Deterministic: what must arrive, by the model. Not deterministic: the moments of the kills.
 *
 * `RULE_KILL_ROUNDS=40 node --test test/rules/kill.test.ts` is the long form, with 20,000 differences in versions of 100,
 * and three versions of 20,000.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { StoredEvent } from '../../src/store/operations/events.ts';
import {
  CRASHING_SERVER,
  call,
  crashingEnvironment,
  elapsed,
  KEY,
  maxLifeMs,
} from '../support/faults/crash.ts';
import { startReceiver } from '../support/receiver.ts';
import { assertArrived, sizeOf } from '../support/rules/arrived.ts';
import type { Filter, Item } from '../support/rules/filters.ts';
import { differencesOf, happened } from '../support/rules/happened.ts';
import type { Entry, Rule } from '../support/rules/model.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { onPostgres, testDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** Nodes that decide the same events. One is killed at a time. */
const NODES = onPostgres() ? 2 : 1;
const ROUNDS = Number(process.env.RULE_KILL_ROUNDS ?? 2);
/** Versions of 100 differences each, which fit into a message. */
const SMALL = { id: 'small', versions: ROUNDS * 5, records: 100 };
/** Versions whose decisions take many steps. */
const LARGE = { id: 'large', versions: 3, records: ROUNDS * 500 };
const COOLDOWN_MS = 2_000;
/** Shorter than requests may ask for. */
const DIGEST_MS = 1_500;

const ANY: Filter = { cel: '"price" in changed', readsRecord: true, holds: () => true };
const CHEAP: Filter = {
  cel: 'record.price < 50',
  readsRecord: true,
  holds: ({ difference }) => Number(difference?.record?.price) < 50,
};
const FALLS: Filter = {
  cel: 'fallsBelow(previous.price, record.price, 50)',
  readsRecord: true,
  holds: ({ difference }) =>
    Number(difference?.previous?.price) >= 50 && Number(difference?.record?.price) < 50,
};
const SENT = { firstVersion: 'send' as const, skipsFirst: false };
const RULES: (Rule | null)[] = [
  null,
  { filter: ANY, ...SENT, cooldownMs: null, digest: null },
  { filter: FALLS, ...SENT, cooldownMs: null, digest: null },
  { filter: ANY, ...SENT, cooldownMs: COOLDOWN_MS, digest: null },
  { filter: CHEAP, ...SENT, cooldownMs: COOLDOWN_MS, digest: null },
  { filter: ANY, ...SENT, cooldownMs: null, digest: { everyMs: DIGEST_MS } },
  { filter: CHEAP, ...SENT, cooldownMs: null, digest: { everyMs: DIGEST_MS } },
];

test(`kill -9 at ${ROUNDS} random moments loses no match, and doubles none`, {
  timeout: 900_000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-rule-kill-'));
  const database = await testDatabase(directory);
  const environment = crashingEnvironment(directory, database);
  const files = join(directory, 'workflows', 'default');
  await mkdir(files, { recursive: true });
  for (const { id } of [SMALL, LARGE]) {
    await writeFile(join(files, `${id}.yaml`), 'source: { type: push }\nmode: upsert\n');
  }
  const startNode = (number: number) =>
    startServerProcess(
      { ...environment, FLOWHOOK_DATA: join(directory, `data${number || ''}`) },
      CRASHING_SERVER,
    );
  const servers: ServerProcess[] = [];
  for (let number = 0; number < NODES; number++) servers.push(await startNode(number));
  const webhooks = await Promise.all(
    [SMALL, LARGE].flatMap((workflow) =>
      RULES.map(async (rule) => {
        const receiver = await startReceiver();
        await subscribe(servers[0] as ServerProcess, workflow.id, receiver.url, rule);
        return { workflow, rule, receiver };
      }),
    ),
  );

  for (const server of servers) await server.stop();
  await shortenDigests(database.url);
  for (let number = 0; number < NODES; number++) servers[number] = await startNode(number);

  let published = 0;
  const states = Promise.all(
    [SMALL, LARGE].map(async (workflow) => {
      const versions = await publishAll(workflow, servers, () => {
        published += 1;
      });
      return { workflow, versions };
    }),
  );
  for (let round = 0; round < ROUNDS; round++) {
    const share = (round / ROUNDS) * (SMALL.versions + LARGE.versions);
    await until(`${share} versions`, () => published >= share);
    await elapsed(Math.random() * maxLifeMs(600));
    await servers[round % NODES]?.kill();
    servers[round % NODES] = await startNode(round % NODES);
  }
  const all = await states;

  const store = await openStore(database.url, { own: false, publicUrl: () => '', log: silentLogger });
  const team = await store.teams.bySlug({ slug: 'default' });
  const events = await store.events.list({ teamId: team?.id ?? '', afterSequence: 0, limit: 100_000 });
  await store.close();
  let matches = 0;
  for (const { workflow, rule, receiver } of webhooks) {
    const versions = all.find((one) => one.workflow === workflow)?.versions ?? [];
    const log = logOf(workflow.id, events, versions, rule);
    const size = sizeOf(log);
    const bodies = () => [...new Map(receiver.received.map(({ event, text }) => [event.id, text])).values()];
    const ended = () =>
      bodies().reduce((sum, text) => {
        const { data } = JSON.parse(text);
        return sum + (data.cooldownEnded ? data.matched : 0);
      }, 0);
    const digests = () => bodies().filter((text) => JSON.parse(text).type === 'webhook_digest').length;
    const ids = new Set(log.flatMap((entry) => ('event' in entry ? [entry.event.id] : [])));
    const isComplete = () =>
      receiver.received.length >= size.messages &&
      new Set(receiver.received.map(({ event }) => event.id).filter((id) => ids.has(id))).size >=
        size.messages &&
      ended() >= size.ended &&
      digests() >= size.digests;
    await receiver.until(
      isComplete,
      `${size.messages} messages, ${size.ended} matches of ended cooldowns, and ${size.digests} digests`,
    );
    assertArrived(log, bodies(), { inOrder: false, inFull: workflow === SMALL });
    const texts = new Map<string, string>();
    for (const { event, text } of receiver.received) {
      assert.equal(text, texts.get(event.id) ?? text, 'a repeated request has the same bytes');
      texts.set(event.id, text);
    }
    matches += bodies().reduce((sum, text) => sum + (JSON.parse(text).data.matched ?? 0), 0);
  }
  for (const server of servers) assert.equal(await server.stop(), 0, server.output());
  await Promise.all(webhooks.map(({ receiver }) => receiver.stop()));
  console.log(`${ROUNDS} kills, ${matches} matches arrived`);
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

async function subscribe(
  server: ServerProcess,
  workflowId: string,
  webhookUrl: string,
  rule: Rule | null,
): Promise<void> {
  const response = await call(server, 'POST', '/v1/integrations/webhooks', {
    workflowId,
    webhookUrl,
    events: ['workflow_data_change'],
    ...(rule === null
      ? {}
      : {
          filter: rule.filter.cel,
          firstVersion: rule.firstVersion,
          cooldown: rule.cooldownMs === null ? null : `${rule.cooldownMs / 1_000}s`,
          digest: rule.digest === null ? null : { every: '1m' },
        }),
  });
  assert.ok(response.ok, await response.text());
}

/** Gives all digests the period `DIGEST_MS`, while no server runs. */
async function shortenDigests(databaseUrl: string): Promise<void> {
  const store = await openStore(databaseUrl, { own: true, publicUrl: () => '', log: silentLogger });
  const teamId = (await store.teams.bySlug({ slug: 'default' }))?.id ?? '';
  for (const { id, rule } of await store.webhooks.list({ teamId, limit: 100 })) {
    if (rule === null || rule.digest === null) continue;
    await store.webhooks.change({ teamId, id, rule: { ...rule, digest: { everyMs: DIGEST_MS } } });
  }
  await store.close();
}

type Versions = Map<string, Item>[];

/** Pushes all versions of a workflow, each until it is confirmed. Returns the records of every version. */
async function publishAll(
  { id, versions, records }: typeof SMALL,
  servers: readonly ServerProcess[],
  onPublished: () => void,
): Promise<Versions> {
  const states: Versions = [new Map()];
  for (let version = 1; version <= versions; version++) {
    const before = states.at(-1) as Map<string, Item>;
    const state = new Map<string, Item>();
    for (let n = 0; n < records; n++) {
      const price = (version * 37 + n * 11) % 100;
      const isSame = before.get(`r${n}`)?.price === price;
      state.set(`r${n}`, { id: `r${n}`, price: isSame ? price + 0.5 : price });
    }
    const body = [...state.values()].map((item) => JSON.stringify(item)).join('\n');
    for (let tries = 0; !(await push(servers[tries % NODES], id, body)); tries++) await elapsed(20);
    states.push(state);
    onPublished();
  }
  return states;
}

/** Whether the push was confirmed. After a kill that is unknown, and pushing the same records again changes nothing. */
async function push(server: ServerProcess | undefined, id: string, body: string): Promise<boolean> {
  try {
    const response = await fetch(`${server?.url}/v1/workflows/${id}/push`, {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'content-type': 'application/x-ndjson' },
      body,
    });
    await response.text();
    return response.status === 200;
  } catch {
    return false;
  }
}

function logOf(id: string, events: readonly StoredEvent[], versions: Versions, rule: Rule | null): Entry[] {
  const changes = events.filter((event) => event.workflowId === id && event.type === 'workflow_data_change');
  assert.equal(changes.length, versions.length - 1, 'every push published one version');
  const log = changes.map((event, at) => ({
    event: happened(event, differencesOf(versions[at] ?? new Map(), versions[at + 1] ?? new Map())),
  }));
  return [{ rule }, ...log, { decide: Number.MAX_SAFE_INTEGER }];
}
