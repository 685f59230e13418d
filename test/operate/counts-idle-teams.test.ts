/**
 * The cost beside many teams that do nothing, on both databases: counting the usage of one active team, visiting it to
 * delete old rows, and looking for its due deliveries. These counts have no noise.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { HOLDER, load, OK, settlement } from '../../src/store/conformance/sending.ts';
import { openStore } from '../../src/store/open.ts';
import { dueTeams } from '../../src/store/operations/agenda.ts';
import { due as statusDue } from '../../src/store/operations/instance.ts';
import { afterSearch, laneNames, nextDueAt } from '../../src/store/operations/lanes.ts';
import { prunable } from '../../src/store/operations/versions.ts';
import { type Kept, teamRetention } from '../../src/store/retention.ts';
import { dueLanes, dueTeams as dueLaneTeams } from '../../src/store/sqlite/lanes.ts';
import type { Store } from '../../src/store/store.ts';
import type { AgendaItem } from '../../src/store/transaction.ts';
import { usageCounting } from '../../src/teams/usage.ts';
import { startCluster } from '../support/postgres.ts';
import { RoundTrips } from '../support/store/count-round-trips.ts';
import { Counter } from '../support/store/count-work.ts';
import { makeModel } from '../support/store/counted-model.ts';
import { multiply, numbered } from '../support/store/multiply.ts';

const FEW = 10;
const MANY = 100_000;
const PAST = { workflows: 1, webhooks: 1, jobs: 1, deliveries: 1 };
const DAY_MS = 24 * 3_600_000;
const KEPT: Kept = {
  keepJobs: 50,
  jobsMs: 30 * DAY_MS,
  attemptsMs: 14 * DAY_MS,
  eventsMs: 30 * DAY_MS,
  auditMs: 365 * DAY_MS,
};
/** What a visit calls, with `teamId` and `limit`. */
const VISIT = [
  ['deliveries.cancelRemoved', {}],
  ['deliveries.expire', { olderMs: DAY_MS }],
  ['deliveries.prune', KEPT],
  ['webhooks.prune', { olderMs: DAY_MS }],
  ['inspectors.prune', {}],
  ['jobs.prune', { keepJobs: KEPT.keepJobs, keepMs: KEPT.jobsMs }],
  ['audit.prune', { olderMs: KEPT.auditMs }],
  ['usage.prune', { hoursMs: DAY_MS, daysMs: DAY_MS }],
] as const;
/** A chore starts after the last event is due for it. */
const AHEAD_MS = 3_600_000;

/** Trees of 100,000 rows are deeper, so each search in one of them reads a page or two more. */
const DEEPER = 2;

test('on SQLite, chores and lanes cost the same beside 100,000 idle teams as beside 10', {
  skip: process.platform === 'linux' ? false : 'pages are counted with /proc',
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-idle-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const few = await workOnSqlite(join(directory, 'few.db'), FEW);
  const many = await workOnSqlite(join(directory, 'many.db'), MANY);
  t.diagnostic(JSON.stringify({ few, many }));
  for (const [name, { statements, read }] of Object.entries(many)) {
    const before = few[name] as Cost;
    assert.equal(statements, before.statements, name);
    assert.ok(read <= DEEPER * before.read, `${name}: ${read} pages, ${before.read} beside ${FEW} teams`);
  }
});

/** Makes a team that has run a job and has sent its deliveries. */
async function makeActive(store: Store): Promise<{ teamId: string; workflowId: string; webhookId: string }> {
  const { model, webhookId } = await makeModel(store);
  const due = await load(store, model.teamId, webhookId);
  await store.deliveries.settle({
    settlements: due.map((one) =>
      settlement(one, 1, { state: 'delivered' }, { ...OK, startedAt: store.now() }),
    ),
  });
  return { ...model, webhookId };
}

interface Cost {
  statements: number;
  /** Pages. */
  read: number;
}

async function workOnSqlite(path: string, teams: number): Promise<Record<string, Cost>> {
  const store = await openStore(`sqlite:${path}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const model = await makeActive(store);
  await store.close();
  const counter = new Counter(path, () => Date.now() + AHEAD_MS);
  const rows = async (sql: string, values: (string | number)[]) =>
    (await counter.read(({ db }) => db.all<Record<string, unknown>>(sql, ...values))).value;
  await multiply(rows, { past: { ...PAST, teams }, model });
  const { teamId, webhookId } = model;
  const sum = async (calls: (() => Promise<{ work: Cost }>)[]): Promise<Cost> => {
    const total = { statements: 0, read: 0 };
    for (const call of calls) {
      const { work } = await call();
      total.statements += work.statements;
      total.read += work.read;
    }
    return total;
  };
  const due = (item: AgendaItem) => () =>
    counter.read((view) => dueTeams(view, { item, until: view.now, limit: 100 }));
  const call = (name: Parameters<Counter['write']>[0], input: object) => () =>
    counter.write(name, { teamId, limit: 100, ...input });
  await counter.write('webhooks.test', { teamId, id: webhookId });
  const lanes = await sum([
    () => counter.read(dueLaneTeams),
    () => counter.read((view) => laneNames(view, { teamId })),
    () => counter.read((view) => dueLanes(view, { teamId, webhookIds: [webhookId] })),
    () => counter.read((view) => afterSearch(view, { teamId })),
    () => counter.write('lanes.raise', { teamId }),
    () => counter.read(nextDueAt),
    () => counter.read(statusDue),
  ]);
  const counting = await sum([due('usage'), call('usage.count', { graceMs: 0 })]);
  const visit = await sum([
    due('prune'),
    ...VISIT.map(([name, input]) => call(name, input)),
    () =>
      counter.read((view) =>
        prunable(view, { teamId, limit: 100, keepVersions: 1, keepMs: DAY_MS, graceMs: DAY_MS }),
      ),
    call('agenda.visited', { sequence: 0, at: null }),
  ]);
  counter.close();
  return { counting, visit, lanes };
}

test('on PostgreSQL, chores and lanes cost the same beside 100,000 idle teams as beside 10', async (t) => {
  const cluster = await startCluster({ autovacuum: 'off', shared_preload_libraries: 'pg_stat_statements' });
  let ahead = 0;
  const store = await openStore(cluster.url, {
    publicUrl: () => '',
    log: silentLogger,
    clock: () => Date.now() + ahead,
    poolSize: 1,
    listen: false,
  });
  const counter = new RoundTrips(cluster.url);
  t.after(async () => {
    await counter.stop();
    await store.close();
    await cluster.stop();
  });
  await counter.start();
  const model = await makeActive(store);
  const rows = (sql: string, values: (string | number)[]) => counter.rows(numbered(sql), values);
  const deps = { store, log: silentLogger, random: () => 0, nodeId: 'node-a' };
  const chores = async () => {
    const found: Record<string, Cost> = {};
    for (const [name, chore] of [
      ['counting', usageCounting(deps)],
      ['visit', teamRetention(deps, KEPT)],
    ] as const) {
      // The chore that is counted finds the team due again, and prepares nothing.
      for (let turn = 0; turn < 2; turn += 1) {
        ahead += AHEAD_MS;
        await counter.rows('update team set usage_at = 0, prune_at = 0 where id = $1', [model.teamId]);
        const { statements, pages } = (await counter.count(() => chore.tick())).work;
        found[name] = { statements, read: pages };
      }
    }
    const { teamId, webhookId } = model;
    await store.webhooks.test({ teamId, id: webhookId });
    for (let turn = 0; turn < 2; turn += 1) {
      const { statements, pages } = (
        await counter.count(async () => {
          const [lane] = await store.deliveries.lanes(HOLDER);
          assert.equal(lane?.webhookId, webhookId);
          assert.ok((await store.deliveries.nextDueAt()) !== null);
          assert.equal((await store.status.due()).well.webhooks, 1);
        })
      ).work;
      found.lanes = { statements, read: pages };
    }
    const due = await load(store, teamId, webhookId);
    await store.deliveries.settle({
      settlements: due.map((one) => settlement(one, 1, { state: 'delivered' })),
    });
    return found;
  };
  await multiply(rows, { past: { ...PAST, teams: FEW }, model });
  const few = await chores();
  await counter.rows(`delete from team where slug like 'idle-%'`);
  await counter.rows('delete from workflow where team_id <> $1', [model.teamId]);
  await counter.rows('delete from webhook where team_id <> $1', [model.teamId]);
  await multiply(rows, {
    past: { ...PAST, workflows: 0, webhooks: 0, jobs: 0, deliveries: 0, teams: MANY },
    model,
  });
  const many = await chores();
  t.diagnostic(JSON.stringify({ few, many }));
  for (const [name, { statements, read }] of Object.entries(many)) {
    const before = few[name] as Cost;
    assert.equal(statements, before.statements, name);
    assert.ok(read <= DEEPER * before.read, `${name}: ${read} pages, ${before.read} beside ${FEW} teams`);
  }
});
