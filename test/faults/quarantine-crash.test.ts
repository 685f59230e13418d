/**
 * `kill -9` at random moments while runs set records aside, and while people accept and drop them. Deterministic: each
 * call has happened as a whole or not at all. Not deterministic: the moments.
 *
 * `QUARANTINE_CRASH_ROUNDS=60 node --test test/faults/quarantine-crash.test.ts` is the long form.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CRASHING_SERVER, call, crashingEnvironment, lived, maxLifeMs } from '../support/faults/crash.ts';
import { seeded } from '../support/seeded.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { testDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const ROUNDS = Number(process.env.QUARANTINE_CRASH_ROUNDS ?? 3);
const IDS = Array.from({ length: 3_000 }, (_, n) => `id${n}`);
/** Long enough that a push takes several transactions. */
const NOTE = 'x'.repeat(600);

/** Prices by id. Negative ones are bad. */
interface State {
  published: Record<string, number>;
  aside: Record<string, number>;
}

interface Step {
  path: string;
  body: unknown;
  after: State;
}

test(`kill -9 at ${ROUNDS} random moments leaves every change of the quarantine whole or undone`, {
  timeout: 600_000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-quarantine-crash-'));
  const database = await testDatabase(directory);
  const environment = crashingEnvironment(directory, database);
  await mkdir(join(directory, 'workflows', 'default'), { recursive: true });
  await writeFile(
    join(directory, 'workflows', 'default', 'goods.yaml'),
    'source: { type: push }\nexpect: { fields: { price: { min: 0 } }, otherwise: quarantine }\n',
  );
  const random = seeded(22);
  const done = new Set<number>();
  let state: State = { published: {}, aside: {} };
  let undone = 0;
  let server = await startServerProcess(environment, CRASHING_SERVER);
  for (let round = 0; round < ROUNDS; round++) {
    let step: Step | undefined;
    const working = (async () => {
      for (;;) {
        step = nextStep(state, random);
        const response = await call(server, 'POST', `/v1/workflows/goods/${step.path}`, step.body).catch(
          () => undefined,
        );
        if (response === undefined) return;
        const text = await response.text().catch(() => undefined);
        if (text === undefined) return;
        assert.equal(response.status, 200, text);
        state = step.after;
        step = undefined;
        done.add(done.size);
      }
    })();
    await lived({ round, accepted: done, maxMs: maxLifeMs(700) });
    await server.kill();
    await working;
    server = await startServerProcess(environment, CRASHING_SERVER);
    const found = await readState(server);
    const before = JSON.stringify(sorted(state));
    const now = JSON.stringify(sorted(found));
    if (now === before) undone += step === undefined ? 0 : 1;
    else
      assert.equal(now, JSON.stringify(sorted((step as Step | undefined)?.after ?? state)), `round ${round}`);
    state = found;
    // The job of the killed server must have ended, before the next one can start.
    await until('no job is unfinished', async () => {
      const { jobs } = (await (await call(server, 'GET', '/v1/jobs?state=running,queued')).json()) as {
        jobs: unknown[];
      };
      return jobs.length === 0;
    });
  }
  const next = nextStep(state, random);
  assert.equal((await call(server, 'POST', `/v1/workflows/goods/${next.path}`, next.body)).status, 200);
  assert.deepEqual(sorted(await readState(server)), sorted(next.after));
  assert.equal(await server.stop(), 0, server.output());
  console.log(`${ROUNDS} kills, ${done.size} calls, ${undone} of them undone`);
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

/** A push of most ids with some bad records, or a decision about some records that were set aside. */
function nextStep(state: State, random: () => number): Step {
  const aside = Object.keys(state.aside);
  const published = { ...state.published };
  const left = { ...state.aside };
  const kind = random();
  if (kind < 0.5 || aside.length === 0) {
    const mark = Math.floor(random() * 1e9) + 1;
    const ids = IDS.filter(() => random() < 0.95);
    const prices = ids.map((id) => [id, random() < 0.1 ? -mark : mark] as const);
    const sent = new Set(ids);
    for (const id of Object.keys(published)) if (!sent.has(id)) delete published[id];
    for (const [id, price] of prices) {
      if (price < 0) left[id] = price;
      else {
        published[id] = price;
        delete left[id];
      }
    }
    const body = prices.map(([id, price]) => ({ id, price, note: NOTE }));
    return { path: 'push', body, after: { published, aside: left } };
  }
  const all = kind > 0.9;
  const ids = all ? aside : aside.filter(() => random() < 0.3).concat(aside.slice(0, 1));
  const verb = kind < 0.75 || all ? 'accept' : 'drop';
  for (const id of ids) {
    if (verb === 'accept') published[id] = state.aside[id] as number;
    delete left[id];
  }
  const some = [...new Set(ids)];
  return {
    path: `quarantine/${verb}`,
    // A call to drop more records takes several transactions.
    body: all ? { all: true } : { ids: some },
    after: { published, aside: left },
  };
}

async function readState(server: ServerProcess): Promise<State> {
  const data = await (await call(server, 'GET', '/v1/workflows/goods/data')).json();
  const lines = await (await call(server, 'GET', '/v1/workflows/goods/quarantine?format=ndjson')).text();
  const entries = lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { id: string; record: { price: number } });
  assert.equal(new Set(entries.map(({ id }) => id)).size, entries.length, 'one entry per id');
  return {
    published: Object.fromEntries(
      (data as { id: string; price: number }[]).map(({ id, price }) => [id, price]),
    ),
    aside: Object.fromEntries(entries.map(({ id, record }) => [id, record.price])),
  };
}

function sorted({ published, aside }: State) {
  const pairs = (of: Record<string, number>) => Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1));
  return { published: pairs(published), aside: pairs(aside) };
}
