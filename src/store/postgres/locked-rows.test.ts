/** Operations continue while a hanging transaction locks one row. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { until } from '../../../test/support/until.ts';
import { Problem } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import { oneDelivery, settlement, subscribe } from '../conformance/sending.ts';
import { CLAIM, makeJob, makeWorkflow, PUBLIC_URL } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import type { ClaimedJob } from '../operations/attempts.ts';
import type { Value } from '../sql.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';

const LEASE_MS = 15_000;
const { url, drop } = await makeDatabase();
let nowMs = Date.UTC(2026, 0, 1);
const store = await openStore(url, { clock: () => nowMs, publicUrl: () => PUBLIC_URL, log: silentLogger });
const pool = openPool({ url, size: 1, log: silentLogger });
const watching = openPool({ url, size: 1, log: silentLogger });
const watcher = new Database(watching);
after(async () => {
  await Promise.all([store.close(), pool.end(), watching.end()]);
  await drop();
});
beforeEach(() => new Database(pool).exec(EMPTY_TABLES));

const isBusy = (error: unknown) => error instanceof Problem && error.code === 'database_busy';

/** Calls `perform` while another transaction locks the rows that `sql` selects. */
function whileLocked(sql: string, values: Value[], perform: () => Promise<void>): Promise<void> {
  return inTransaction(pool, async (tx) => {
    assert.ok((await tx.all(`${sql} for update`, ...values)).length > 0);
    await perform();
  });
}

test('a settlement counts even if its delivery was changed while it waited', async () => {
  const { teamId, due } = await oneDelivery(store);
  const settled = await inTransaction(pool, async (tx) => {
    await tx.run('update delivery set class = 2 where team_id = $1 and id = $2', teamId, due.id);
    const waits = store.deliveries.settle({ settlements: [settlement(due, 1, { state: 'delivered' })] });
    await until('the settlement waits', () =>
      watcher.get(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'given'`),
    );
    return { waits };
  });
  await settled.waits;
  const stored = await store.deliveries.get({ teamId, id: due.id });
  assert.equal(stored?.state, 'delivered');
  assert.equal(stored.attempts.length, 1);
});

test('a claim skips the jobs of a locked team only', async () => {
  const one = await makeWorkflow(store, { team: 'one' });
  const other = await makeWorkflow(store, { team: 'other' });
  await makeJob(store, one);
  nowMs += 1;
  const job = await makeJob(store, other);
  await whileLocked('select 1 from team where id = $1', [one.teamId], async () => {
    // The limit is one job, and the job of the locked team is the first in the queue.
    const claimed = await store.jobs.claim({ ...CLAIM, limit: 1 });
    assert.deepEqual(
      claimed.map((found) => found.job.id),
      [job.id],
    );
  });
  const [later] = await until('the job is claimed', someClaimed);
  assert.equal(later?.job.teamId, one.teamId);
});

test('a claim waits for a team that is locked briefly, as busy teams often are', async () => {
  // A claim waits 0.5 s. On a busy machine, that may pass before this test continues.
  for (let tries = 0; tries < 10; tries++) {
    const at = await makeWorkflow(store, { team: `busy-${tries}` });
    const job = await makeJob(store, at);
    let claiming: ReturnType<typeof store.jobs.claim> | undefined;
    await whileLocked('select 1 from team where id = $1', [at.teamId], async () => {
      claiming = store.jobs.claim({ ...CLAIM, limit: 1 });
      await Promise.race([claiming, until('the claim waits for the lock', waitsForLock)]);
    });
    const [claimed] = (await claiming) ?? [];
    if (claimed?.job.id === job.id) return;
  }
  assert.fail('No claim waited for the team');
});

test('only few claims wait for a team that stays locked', async () => {
  const at = await makeWorkflow(store, { team: 'hung' });
  await makeJob(store, at);
  await whileLocked('select 1 from team where id = $1', [at.teamId], async () => {
    assert.deepEqual(await store.jobs.claim(CLAIM), []);
    let isOver = false;
    const again = Promise.all([store.jobs.claim(CLAIM), store.jobs.claim(CLAIM)]).finally(() => {
      isOver = true;
    });
    while (!isOver) assert.equal(await waitsForLock(), false);
    assert.deepEqual(await again, [[], []]);
  });
});

test('a claim waits for many locked teams concurrently, and claims the jobs of the others', async () => {
  const free = await makeWorkflow(store, { team: 'free' });
  const job = await makeJob(store, free);
  const locked: string[] = [];
  for (let n = 0; n < 8; n++) {
    const at = await makeWorkflow(store, { team: `locked-${n}` });
    await makeJob(store, at);
    locked.push(at.teamId);
  }
  await whileLocked('select 1 from team where id = any($1::text[])', [locked], async () => {
    const claimed = await store.jobs.claim({ ...CLAIM, limit: 20 });
    assert.deepEqual(
      claimed.map((found) => found.job.id),
      [job.id],
    );
  });
  let left = locked.length;
  await until('all jobs are claimed', async () => {
    left -= (await store.jobs.claim({ ...CLAIM, limit: 20 })).length;
    return left === 0;
  });
});

/** Claims jobs; undefined if none is due. */
async function someClaimed(): Promise<ClaimedJob[] | undefined> {
  const claimed = await store.jobs.claim(CLAIM);
  return claimed.length > 0 ? claimed : undefined;
}

/** Whether a statement of another connection waits for a lock. */
async function waitsForLock(): Promise<boolean> {
  const found = await watcher.get(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return found !== undefined;
}

test('a locked lane is neither taken, renewed nor lost, and other lanes do not wait for it', async () => {
  const at = await makeWorkflow(store);
  const { teamId } = at;
  const ids = [
    await subscribe(store, at, ['workflow_queued', 'a']),
    await subscribe(store, at, ['workflow_queued', 'b']),
  ];
  await makeJob(store, at);
  const holder = { nodeId: 'a', leaseMs: LEASE_MS };
  assert.equal((await store.deliveries.lanes({ ...holder, limit: 9 })).length, 2);
  const lanes = ids.map((webhookId) => ({ teamId, webhookId, epoch: 1 }));
  await whileLocked('select 1 from lane where webhook_id = $1', [ids[0] as string], async () => {
    assert.deepEqual(await store.deliveries.keepLanes({ ...holder, lanes }), {
      lost: [],
      late: lanes.slice(0, 1),
    });
    nowMs += 2 * LEASE_MS;
    const found = await store.deliveries.lanes({ nodeId: 'b', leaseMs: LEASE_MS, limit: 9 });
    assert.deepEqual(
      found.map(({ webhookId }) => webhookId),
      ids.slice(1),
    );
  });
  const kept = await store.deliveries.keepLanes({ ...holder, lanes });
  assert.deepEqual(kept, { lost: lanes.slice(1), late: [] });
});

test('a call that waits too long for a row fails as busy, and leases are renewed meanwhile', async () => {
  const at = await makeWorkflow(store);
  let calls: Promise<unknown>[] = [];
  await whileLocked('select 1 from workflow where id = $1', [at.workflowId], async () => {
    // More calls than connections.
    calls = Array.from({ length: 10 }, () =>
      store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null }),
    );
    for (const call of calls) call.catch(() => undefined);
    const refused = assert.rejects(Promise.race(calls), isBusy);
    const mark = await Promise.race([
      refused.then(() => 'refused'),
      store.deliveries.keepLanes({
        nodeId: 'a',
        leaseMs: LEASE_MS,
        lanes: [{ teamId: at.teamId, webhookId: 'w', epoch: 1 }],
      }),
    ]);
    assert.notEqual(mark, 'refused');
    await refused;
  });
  await Promise.allSettled(calls);
});

test('calls that wait for a locked team leave connections to other teams', async () => {
  const other = await makeWorkflow(store, { team: 'other' });
  // More calls than connections. They wait only for the row of the team, not for each other.
  const own = await Promise.all(
    Array.from({ length: 10 }, (_, n) => makeWorkflow(store, { team: 'one', id: `w${n}` })),
  );
  let calls: Promise<unknown>[] = [];
  await whileLocked('select 1 from team where id = $1', [own[0]?.teamId as string], async () => {
    calls = own.map((at) => store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null }));
    const first = await Promise.race([...calls, makeJob(store, other)]);
    assert.ok((first as { teamId?: string }).teamId === other.teamId);
  });
  await Promise.all(calls);
});
