/** Leases of lanes between two nodes, and the cost of finding lanes. The conformance suite tests which lanes are found. */

import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import type { DueDelivery, NextStep } from '../../model/delivery.ts';
import { silentLogger } from '../../observe/log.ts';
import { FAILED, load, OK, settlement, subscribe } from '../conformance/sending.ts';
import { makeJob, makeWorkflow, PUBLIC_URL } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import type { LaneName } from '../transaction.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';
import { LANES } from './lanes.ts';

const LEASE_MS = 15_000;
const { url, drop } = await makeDatabase();
let nowMs = Date.UTC(2026, 0, 1);
const open = (options: { listen?: boolean } = {}) =>
  openStore(url, { clock: () => nowMs, publicUrl: () => PUBLIC_URL, log: silentLogger, ...options });
const a = node('a', await open());
const b = node('b', await open());
const pool = openPool({ url, size: 1, log: silentLogger });
const db = new Database(pool);
let made = 0;
after(async () => {
  await Promise.all([a.store.close(), b.store.close(), pool.end()]);
  await drop();
});
beforeEach(() => db.exec(EMPTY_TABLES));

/** One process and its operations on lanes. */
function node(nodeId: string, store: Store) {
  const holder = { nodeId, leaseMs: LEASE_MS };
  const { deliveries } = store;
  return {
    store,
    lanes: async (limit = 100) => {
      const found = await deliveries.lanes({ ...holder, limit });
      return new Map(found.map(({ webhookId, epoch }) => [webhookId, epoch]));
    },
    lane: async (name: LaneName) => (await deliveries.lane({ ...name, ...holder }))?.epoch,
    keep: async (name: LaneName, epoch: number) =>
      (await deliveries.keepLanes({ ...holder, lanes: [{ ...name, epoch }] })).lost.length === 0,
    release: (name: LaneName, epoch: number) =>
      deliveries.releaseLanes({ nodeId, lanes: [{ ...name, epoch }] }),
  };
}

/** Makes webhooks with one due delivery each. */
async function dueLanes(
  count: number,
  team = 'default',
): Promise<[LaneName & { due: DueDelivery }, ...LaneName[]]> {
  made += 1;
  const at = await makeWorkflow(a.store, { team, id: `w${made}` });
  const { teamId } = at;
  const ids = await Promise.all(
    Array.from({ length: count }, (_, n) => subscribe(a.store, at, ['workflow_queued', String(n)])),
  );
  await makeJob(a.store, at);
  const [first, ...rest] = ids.map((webhookId) => ({ teamId, webhookId }));
  const [due] = await load(a.store, teamId, first?.webhookId ?? '');
  return [{ ...(first as LaneName), due: due as DueDelivery }, ...rest];
}

test('one of two nodes holds a lane until its lease expires', async () => {
  const [lane] = await dueLanes(1);
  const [mine, others] = await Promise.all([a.lane(lane), b.lane(lane)]);
  assert.deepEqual([mine, others].sort(), [1, undefined]);
  const [holder, other] = mine === 1 ? [a, b] : [b, a];
  assert.deepEqual(await other.lanes(), new Map());
  assert.deepEqual(await holder.lanes(), new Map([[lane.webhookId, 1]]));
  nowMs += LEASE_MS - 1;
  assert.equal(await other.lane(lane), undefined);
  nowMs += 1;
  assert.equal(await other.lane(lane), 2);
  assert.equal(await holder.lane(lane), undefined);
  assert.equal(await holder.keep(lane, 1), false);
  assert.deepEqual(await holder.lanes(), new Map());
});

test('without hints, lanes of more than 100 teams that another node holds hide no free lane', async () => {
  const c = node('c', await open({ listen: false }));
  try {
    for (let n = 0; n < 101; n++) {
      const [lane] = await dueLanes(1, `held${n}`);
      await b.lane(lane);
    }
    nowMs += 1;
    const [free] = await dueLanes(1, 'free');
    const found = [await c.lanes(), await c.lanes()].flatMap((lanes) => [...lanes.keys()]);
    assert.deepEqual(found, [free.webhookId]);
  } finally {
    await c.store.close();
  }
});

test('renewing the lease keeps the lane and its epoch', async () => {
  const [lane] = await dueLanes(1);
  assert.equal(await a.lane(lane), 1);
  for (let n = 0; n < 3; n++) {
    nowMs += LEASE_MS - 1;
    assert.equal(await a.keep(lane, 1), true);
    assert.equal(await b.lane(lane), undefined);
  }
  nowMs += LEASE_MS;
  assert.equal(await a.keep(lane, 1), true, 'no other node has taken it');
  assert.equal(await a.lane(lane), 1);
  assert.equal(await a.keep(lane, 0), false, 'an earlier epoch is no longer valid');
});

test('a node that holds a lane can rely on two thirds of the lease', async () => {
  const [lane] = await dueLanes(1);
  await a.lane(lane);
  for (const epoch of [() => a.lane(lane), async () => (await a.lanes()).get(lane.webhookId)]) {
    for (const afterMs of [5_000, 5_001, 14_999, 15_000, 60_000]) {
      nowMs += afterMs;
      assert.equal(await epoch(), 1);
      nowMs += (LEASE_MS * 2) / 3 - 1;
      assert.equal(await b.lane(lane), undefined, `${afterMs} ms later`);
    }
  }
});

test('a released lane can be taken immediately', async () => {
  const [lane] = await dueLanes(1);
  assert.equal(await a.lane(lane), 1);
  await a.release(lane, 0);
  await b.release(lane, 1);
  assert.equal(await b.lane(lane), undefined, 'only the holder can release it');
  await a.release(lane, 1);
  assert.equal(await b.lane(lane), 2);
  await a.release(lane, 1);
  assert.equal(await a.lane(lane), undefined);
  await b.release(lane, 2);
  assert.equal(await a.lane(lane), 3);
});

test('a node takes at most `limit` new lanes per call, besides those that it holds', async () => {
  const all = await dueLanes(12);
  const first = await a.lanes(5);
  assert.equal(first.size, 5);
  const second = await a.lanes(5);
  assert.equal(second.size, 10);
  for (const id of first.keys()) assert.ok(second.has(id));
  const rest = await b.lanes(5);
  assert.equal(rest.size, 2);
  assert.deepEqual(new Set([...second.keys(), ...rest.keys()]), new Set(all.map((lane) => lane.webhookId)));
});

test('nodes that search concurrently never hold the same lane', async () => {
  await dueLanes(60);
  const found = await Promise.all([a, b, a, b].map((one) => one.lanes(20)));
  const held = (places: number[]) => new Set(places.flatMap((place) => [...(found[place]?.keys() ?? [])]));
  const [ofA, ofB] = [held([0, 2]), held([1, 3])];
  assert.deepEqual(
    [...ofA].filter((id) => ofB.has(id)),
    [],
  );
  assert.ok(ofA.size + ofB.size >= 20, `${ofA.size} and ${ofB.size}`);
});

test('failures count only for the holder of the lane, successes always', async () => {
  const [lane] = await dueLanes(1);
  const { due } = lane;
  await a.lane(lane);
  nowMs += LEASE_MS;
  assert.equal(await b.lane(lane), 2);
  const get = async () => {
    const found = await a.store.deliveries.get({ teamId: lane.teamId, id: due.id });
    return [found?.state, found?.attempt, found?.attempts.map(({ outcome }) => outcome)];
  };
  const webhook = async () => a.store.webhooks.get({ teamId: lane.teamId, id: lane.webhookId });
  const settle = (store: Store, epoch: number, attempt: number, next: NextStep, log = FAILED) => {
    const health = log === FAILED ? 'failing' : null;
    return store.deliveries.settle({
      settlements: [{ ...settlement(due, attempt, next, log), epoch, health }],
    });
  };

  await settle(a.store, 1, 1, { state: 'dead' });
  assert.deepEqual(await get(), ['waiting', 0, []]);
  assert.equal((await webhook())?.failingSince, null);
  await settle(a.store, 1, 1, { state: 'canceled' });
  assert.ok(await webhook(), 'a 410 response is ignored after another node took the lane');
  await settle(b.store, 2, 1, { state: 'waiting', nextAt: nowMs });
  assert.deepEqual(await get(), ['waiting', 1, ['timeout']]);
  assert.equal((await webhook())?.failingSince, nowMs);
  await settle(a.store, 1, 1, { state: 'delivered' }, OK);
  assert.deepEqual(await get(), ['delivered', 1, ['ok']]);
  await settle(b.store, 2, 2, { state: 'dead' });
  assert.deepEqual(await get(), ['delivered', 1, ['ok']]);
});

test('reads one entry per lane, not every delivery', async () => {
  const [{ teamId }] = await dueLanes(1);
  // 20,000 waiting deliveries in 100 lanes, and 20,000 dead ones in 100 others.
  await db.run(
    `insert into webhook (team_id, id, url, events, event_set, fires_for, state, settings, secret, created_at)
     select $1, 'wh_' || n, 'https://a.test/' || n, '[]', '[]', '|*|', 'active', '{"ordered":' || (n % 10 = 0) || '}', '', 1
     from generate_series(1, 200) n`,
    teamId,
  );
  await db.run(
    `insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at, class)
     select $1, 'dlv_' || n, 'wh_' || (n % 200 + 1), 1, case when n % 2 = 0 then 'waiting' else 'dead' end,
            case when n % 2 = 0 then $2::bigint + n end, $2, n % 3
     from generate_series(1, 40000) n`,
    teamId,
    nowMs - 40_000,
  );
  // Without statistics, and with statistics.
  for (const analyze of [false, true]) {
    if (analyze) await db.exec('analyze');
    const scans = await scansOf(LANES, teamId, nowMs, 'a');
    assert.ok(scans.length >= 5);
    for (const scan of scans) {
      assert.match(scan['Node Type'], /^Index (Only )?Scan$/);
      assert.match(
        scan['Index Name'] ?? '',
        /^delivery_(due|order)$/,
        'these indexes hold only waiting deliveries',
      );
    }
    const rows = scans.reduce((sum, scan) => sum + scan['Actual Loops'] * rowsOf(scan), 0);
    assert.ok(rows > 200 && rows < 200 * 8, `${rows} rows of deliveries were read`);
  }
});

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

/** The scans of `delivery` in the plan of a statement. */
async function scansOf(sql: string, ...values: (string | number)[]): Promise<Plan[]> {
  const [row] = await db.all<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, format json) ${sql}`,
    ...values,
  );
  assert.ok(row);
  const [{ Plan: top }] = row['QUERY PLAN'];
  const inside = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(inside)];
  return inside(top).filter((plan) => plan['Relation Name'] === 'delivery');
}

function rowsOf(scan: Plan): number {
  return scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0);
}
