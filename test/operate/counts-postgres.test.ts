/**
 * The cost of hot paths on PostgreSQL, in statements, round trips and pages. Prepared statements are planned while the
 * tables are nearly empty and have no statistics. The plans must still be good when the tables have become large.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planWrites } from '../../src/model/planned-writes.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { HOLDER, MANY, OK, settlement } from '../../src/store/conformance/sending.ts';
import { CLAIM, heldOf, makeJob, makeWorkflow, people } from '../../src/store/conformance/setup.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { startCluster } from '../support/postgres.ts';
import { RoundTrips } from '../support/store/count-round-trips.ts';
import { HASH, makeModel } from '../support/store/counted-model.ts';
import { multiply, numbered, type Past } from '../support/store/multiply.ts';

const PAST: Past = { teams: 1_000, workflows: 1_000, webhooks: 1_000, jobs: 10_000, deliveries: 50_000 };
/** More teams than one claim searches. */
const WAITING_TEAMS = 20;
const NODE = { nodeId: 'node-a', leaseMs: 15_000 };

/**
 * Maximum cost of each operation: statements, round trips, pages with the long history. If you make an operation
 * cheaper, lower its numbers. If you raise a number, explain why.
 */
const MOST: Record<string, [statements: number, trips: number, pages: number]> = {
  'a key is looked up': [1, 1, 2],
  'a workflow is looked up': [1, 1, 5],
  'a job is queued': [10, 3, 65],
  'a job is refused': [4, 2, 6],
  'a job is looked up': [1, 1, 3],
  // This store receives no notifications, so a sweep of the agenda precedes each claim.
  'a job is claimed': [12, 6, 67],
  'there is nothing to claim': [2, 2, 12],
  'a running job is renewed': [3, 2, 14],
  'a batch is compared': [6, 2, 9],
  'a batch is written': [6, 4, 30],
  'a run with changes is published': [19, 12, 89],
  'a version is looked up': [1, 1, 9],
  // Four places are looked at for records that many versions have changed.
  'a page of records is read': [6, 2, 9],
  'the address of a feed is looked up': [1, 1, 14],
  'a test event is sent': [7, 3, 23],
  // A lane that was never held is inserted by a statement of its own.
  'a lane is taken': [5, 3, 20],
  'a lane is looked at': [1, 1, 11],
  // Without notifications, two statements find the teams whose lanes may be due.
  'all lanes are searched': [3, 3, 18],
  'a lane is loaded': [1, 1, 35],
  'a delivery is settled': [5, 2, 37],
  'three deliveries are settled together': [5, 2, 80],
  'the first page of jobs': [3, 1, 9],
  'the first page of jobs of a workflow': [6, 2, 17],
  'the first page of events': [6, 2, 18],
  'the first page of workflows': [3, 1, 8],
  // The newest version of each workflow, and the oldest, which says what the history costs.
  'the summary of ten workflows': [5, 3, 100],
  'schedules are looked at': [1, 1, 1],
  'abandoned jobs are looked for': [1, 1, 3],
  'a job of one of many waiting teams is claimed': [15, 6, 127],
};
/** Tolerance for pages, which depend on splits. */
const SPREAD = 1.2;

test('hot paths cost at most the known numbers with a long history, even if they were planned before it', async (t) => {
  const cluster = await startCluster({
    autovacuum: 'off',
    shared_preload_libraries: 'pg_stat_statements',
    max_connections: '20',
  });
  // All calls use one connection, and so the plans of the first calls.
  const options = { publicUrl: () => '', log: silentLogger, poolSize: 1, listen: false };
  const store = await openStore(cluster.url, options);
  const counter = new RoundTrips(cluster.url);
  t.after(async () => {
    await counter.stop();
    await store.close();
    await cluster.stop();
  });
  await counter.start();

  const { model } = await makeModel(store);
  await countAll(store, counter, model);
  const rows = (sql: string, values: (string | number)[]) => counter.rows(numbered(sql), values);
  await multiply(rows, { past: PAST, model });
  const found = await countAll(store, counter, { ...model, workflowId: 'past-3' }, { isLarge: true });
  const problems: string[] = [];
  assert.deepEqual([...found.keys()], Object.keys(MOST));
  for (const [name, { work, largest }] of found) {
    const [statements, trips, pages] = MOST[name] as [number, number, number];
    if (work.statements > statements)
      problems.push(`${name}: ${work.statements} statements, maximum: ${statements}`);
    if (work.trips > trips) problems.push(`${name}: ${work.trips} round trips, maximum: ${trips}`);
    if (work.pages > SPREAD * pages)
      problems.push(`${name}: ${work.pages} pages, maximum: ${pages}. The statement with most: ${largest}`);
  }
  assert.deepEqual(problems, []);
});

type Counted = Awaited<ReturnType<RoundTrips['count']>>;

/** Runs every operation once, on a workflow and its webhook. */
async function countAll(
  store: Store,
  counter: RoundTrips,
  at: { teamId: string; workflowId: string },
  { isLarge = false } = {},
): Promise<Map<string, Counted>> {
  const { teamId } = at;
  const found = new Map<string, Counted>();
  const note = async <Value>(name: string, operation: () => Promise<Value>): Promise<Value> => {
    const counted = await counter.count(operation);
    found.set(name, counted);
    return counted.value;
  };
  const enqueue = () => store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null });
  const claim = () => store.jobs.claim({ ...CLAIM, limit: 1 });

  await note('a key is looked up', () => store.keys.byHash({ hash: HASH }));
  await note('a workflow is looked up', () => store.workflows.get({ teamId, id: at.workflowId }));
  const queued = await note('a job is queued', enqueue);
  assert.ok(queued.outcome === 'queued');
  await note('a job is refused', enqueue);
  await note('a job is looked up', () => store.jobs.get({ teamId, id: queued.job.id }));
  const [claimed] = await note('a job is claimed', claim);
  assert.ok(claimed !== undefined);
  const held = heldOf(claimed.job);
  await note('there is nothing to claim', claim);
  await note('a running job is renewed', () => store.jobs.beat({ ...CLAIM, held: [held] }));

  const records = new Map(people({ '1': 'Ada', '2': 'Grace' }).map(({ id, body }) => [id, body]));
  const compared = await note('a batch is compared', () =>
    store.records.compare({ held, ids: [...records.keys()] }),
  );
  const { writes } = planWrites({ ...compared, mode: 'replace', records });
  await note('a batch is written', () => store.records.stage({ held, writes }));
  const publish = { held, state: undefined, fields: ['id', 'name'] };
  await note('a run with changes is published', () => store.records.publish(publish));
  await note('a version is looked up', () => store.records.version(at));
  await note('a page of records is read', () =>
    store.records.page({ ...at, version: 1, afterSeq: 0, rows: 1_000 }),
  );
  const settings = { title: null, filter: null, entries: 'record', windowMs: 86_400_000, most: 50 } as const;
  await store.feeds.create({ ...at, ...settings, token: { hash: `open ${isLarge}`, sealed: '' } });
  const opened = await note('the address of a feed is looked up', () =>
    store.feeds.open({ teamId, hash: `open ${isLarge}` }),
  );
  assert.ok(typeof opened === 'object');

  const [lane] = (await store.webhooks.list({ teamId, workflowId: at.workflowId, limit: 1 })).map(
    ({ id }) => id,
  );
  assert.ok(lane !== undefined);
  const name = { teamId, webhookId: lane };
  await note('a test event is sent', () => store.webhooks.test({ teamId, id: lane }));
  await note('a lane is taken', () => store.deliveries.lane({ ...name, ...NODE }));
  await note('a lane is looked at', () => store.deliveries.lane({ ...name, ...NODE }));
  await note('all lanes are searched', () => store.deliveries.lanes(HOLDER));
  const due = await note('a lane is loaded', () =>
    store.deliveries.load({ ...name, limits: MANY, ordered: false }),
  );
  const settle = (count: number) =>
    store.deliveries.settle({
      settlements: due.splice(0, count).map((one) => settlement(one, 1, { state: 'delivered' }, OK)),
    });
  await note('a delivery is settled', () => settle(1));
  await note('three deliveries are settled together', () => settle(3));
  await settle(due.length);

  // Lists are not prepared. They are planned by statistics.
  if (isLarge) await counter.rows('analyze');
  await note('the first page of jobs', () => store.jobs.list({ teamId, limit: 50 }));
  await note('the first page of jobs of a workflow', () => store.jobs.list({ ...at, limit: 50 }));
  await note('the first page of events', () => store.events.history({ teamId, limit: 50 }));
  await note('the first page of workflows', () => store.workflows.list({ teamId, limit: 10 }));
  const workflowIds = (await store.workflows.list({ teamId, limit: 10 })).map(({ id }) => id);
  await note('the summary of ten workflows', () => store.jobs.summaries({ teamId, workflowIds }));
  await note('schedules are looked at', () => store.schedules.due({ limit: 100 }));
  await note('abandoned jobs are looked for', () => store.jobs.abandoned({ nodeId: null }));
  if (!isLarge) return found;
  for (let n = 0; n < WAITING_TEAMS; n += 1) {
    await makeJob(store, await makeWorkflow(store, { team: `waiting-${n}` }));
  }
  await note('a job of one of many waiting teams is claimed', claim);
  return found;
}
