/**
 * The cost of hot paths on SQLite, in statements and pages: unlike times, these counts have no noise. Each operation is
 * counted in a database with some history, and in one with a hundred times as much.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { planWrites } from '../../src/model/planned-writes.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { load, MANY, OK, settlement } from '../../src/store/conformance/sending.ts';
import {
  CLAIM,
  heldOf,
  makeRunning,
  makeWorkflow,
  people,
  publishRun,
} from '../../src/store/conformance/setup.ts';
import { openStore } from '../../src/store/open.ts';
import { abandoned, type ClaimedJob } from '../../src/store/operations/attempts.ts';
import { replaysRun } from '../../src/store/operations/deliveries/replay-steps.ts';
import { search as searchDeliveries } from '../../src/store/operations/deliveries/search.ts';
import { history } from '../../src/store/operations/events.ts';
import { open as openFeed } from '../../src/store/operations/feeds/addresses.ts';
import { list as listJobs } from '../../src/store/operations/job-lists.ts';
import {
  type Enqueued,
  get as getJob,
  nextDueAt as nextScheduleDueAt,
  due as schedulesDue,
} from '../../src/store/operations/jobs.ts';
import { byHash } from '../../src/store/operations/keys.ts';
import { laneNames, nextDueAt as nextDeliveryDueAt } from '../../src/store/operations/lanes.ts';
import { compare, currentSeqs, page, search } from '../../src/store/operations/records.ts';
import { settlementRow } from '../../src/store/operations/settle.ts';
import { version } from '../../src/store/operations/versions.ts';
import { get as getWorkflow, list as listWorkflows } from '../../src/store/operations/workflows.ts';
import { nextDueAt as nextJobDueAt } from '../../src/store/sqlite/claim.ts';
import { dueLanes, dueTeams, lane, load as loadLane } from '../../src/store/sqlite/lanes.ts';
import type { View } from '../../src/store/transaction.ts';
import { Counter, type Work } from '../support/store/count-work.ts';
import { HASH, makeModel } from '../support/store/counted-model.ts';
import { multiply, type Past } from '../support/store/multiply.ts';

// With these numbers of jobs and deliveries, no page of the trees that are counted is about to be split.
const PAST: Past = { workflows: 10, webhooks: 10, jobs: 101, deliveries: 480 };
const TIMES = 100;

/**
 * Maximum cost of each operation: statements, pages read in the database with the long history, pages written. If you
 * make an operation cheaper, lower its numbers. If you raise a number, explain why.
 */
const MOST: Record<string, [statements: number, read: number, written: number]> = {
  'a key is looked up': [1, 3, 0],
  'a workflow is looked up': [1, 5, 0],
  'a job is queued': [9, 36, 9],
  // One statement tries to insert the job, so that a call that is not refused needs one less.
  'a job is refused': [5, 7, 0],
  'a job is looked up': [1, 4, 0],
  // A claim also adds the event `workflow_queued` to the index of its workflow, which a queue call no longer does.
  'a job is claimed': [16, 47, 18],
  // The team has just run a job, so its agenda still names it.
  'there is nothing to claim': [5, 4, 0],
  'a running job is renewed': [3, 4, 1],
  'a batch is compared': [2, 9, 0],
  'a batch is written': [6, 11, 4],
  'a run with changes is published': [20, 56, 25],
  'a run without changes is published': [12, 53, 22],
  'a version is looked up': [1, 7, 0],
  'a page of records is read': [2, 6, 0],
  // All that a reader needs who has the newest content.
  'the address of a feed is looked up': [1, 11, 0],
  'the address of a revoked feed is looked up': [2, 4, 0],
  // Two statements find the teams whose lanes may be due, and two search one of these teams.
  'all lanes are searched': [4, 12, 0],
  'a lane is looked at': [1, 12, 0],
  'a lane is loaded': [6, 20, 0],
  'a delivery is settled': [5, 20, 5],
  'three deliveries are settled together': [9, 20, 5],
  'the first page of jobs': [1, 6, 0],
  'the first page of jobs of a workflow': [2, 28, 0],
  'the first page of events': [2, 24, 0],
  'the first page of workflows': [1, 8, 0],
  'the first page of deliveries': [2, 51, 0],
  'the first page of failed deliveries of a webhook': [2, 5, 0],
  'schedules are looked at': [1, 2, 0],
  'the next due job, schedule and delivery are looked for': [7, 15, 0],
  'abandoned jobs are looked for': [1, 2, 0],
};
/**
 * The B-trees (tables and indexes) that a queue call adds an entry to. Their number and width account for most of its
 * time on the writer thread.
 */
const ENTRIES = ['event', 'event_id', 'job', 'job_due', 'job_slot'];
/** Additional entries for each webhook that receives the event. */
const ENTRIES_OF_DELIVERY = ['delivery', 'delivery_event', 'delivery_history', 'delivery_order'];
/** Tolerance for page splits, which depend on earlier writes. */
const SPLITS = 2;

test('hot paths cost at most the known numbers, and hardly more with a hundred times the history', {
  skip: process.platform === 'linux' ? false : 'pages are counted with /proc',
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-counts-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const small = await countAll(join(directory, 'small.db'), PAST);
  const large = await countAll(join(directory, 'large.db'), {
    workflows: PAST.workflows * TIMES,
    webhooks: PAST.webhooks * TIMES,
    jobs: PAST.jobs * TIMES,
    deliveries: PAST.deliveries * TIMES,
  });
  const problems: string[] = [];
  assert.deepEqual([...large.keys()], Object.keys(MOST));
  for (const [name, [statements, read, written]] of Object.entries(MOST)) {
    const work = large.get(name) as Work;
    const before = small.get(name) as Work;
    for (const [what, count, most] of [
      ['statements', work.statements, statements],
      ['pages read', work.read, read + SPLITS],
      ['pages written', work.written, written === 0 ? 0 : written + SPLITS],
    ] as const) {
      if (count > most) problems.push(`${name}: ${count} ${what}, maximum: ${most}`);
    }
    // Trees with a hundred times the entries are one or two levels deeper.
    if (work.read > 3 * before.read)
      problems.push(
        `${name}: ${work.read} pages read with ${TIMES} times the history, ${before.read} without`,
      );
  }
  assert.deepEqual(problems, []);
});

test('a queue call adds entries only to the known B-trees', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-entries-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'past.db');
  const teamId = await makePast(path, { ...PAST, webhooks: 1 });
  const counter = new Counter(path, Date.now);
  /** The names of the trees that a call adds entries to, once per entry. */
  const addedBy = async (workflowId: string) => {
    const before = counter.entries();
    await counter.write('jobs.enqueue', { teamId, workflowId, origin: 'api', idempotencyKey: null });
    const after = [...counter.entries()];
    return after.flatMap(([name, entries]) =>
      Array.from({ length: entries - (before.get(name) ?? 0) }, () => name),
    );
  };
  const alone = await addedBy('past-2');
  const delivered = await addedBy('past-1');
  counter.close();
  assert.deepEqual(alone.sort(), ENTRIES);
  assert.deepEqual(delivered.sort(), [...ENTRIES, ...ENTRIES_OF_DELIVERY].sort());
});

test('reading records takes two pages per record, even if 200 versions have changed each of them', {
  skip: process.platform === 'linux' ? false : 'pages are counted with /proc',
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-versions-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'versions.db');
  const store = await openStore(`sqlite:${path}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const place = await makeWorkflow(store);
  const [records, versions] = [100, 200];
  for (let version = 1; version <= versions; version += 1) {
    const name = `${version} `.repeat(40);
    await publishRun(store, place, Object.fromEntries(Array.from({ length: records }, (_, n) => [n, name])));
  }
  const held = await makeRunning(store, place);
  await store.close();
  const counter = new Counter(path, Date.now);
  const range = { ...place, version: versions - 20, afterSeq: 0 };
  const whole = { ...range, rows: 2_000 };
  // All rows of these records are on about 1,000 pages.
  for (const read of [
    (view: View) => page(view, whole),
    (view: View) => page(view, { ...whole, limit: records / 2 }),
    (view: View) => search(view, { ...range, scan: 2_000, q: 'x', limit: records }),
    (view: View) => currentSeqs(view, { held, afterSeq: 0, rows: 2_000 }),
  ]) {
    const { work } = await counter.read<unknown>(read);
    assert.ok(work.read <= 2 * records, `${work.read} pages read by ${read}`);
  }
  counter.close();
});

/** Runs every operation once, on a workflow and a webhook with history. */
async function countAll(path: string, past: Past): Promise<Map<string, Work>> {
  const teamId = await makePast(path, past);
  const at = { teamId, workflowId: 'past-3' };
  const counter = new Counter(path, Date.now);
  const found = new Map<string, Work>();
  const note = async <Value>(
    name: string,
    counted: Promise<{ value: Value; work: Work }>,
  ): Promise<Value> => {
    const { value, work } = await counted;
    found.set(name, work);
    return value;
  };
  const enqueue = () =>
    counter.write<Enqueued>('jobs.enqueue', { ...at, origin: 'api', idempotencyKey: null });
  const claim = () => counter.write<ClaimedJob[]>('jobs.claim', { ...CLAIM, limit: 1 });
  const publish = {
    state: undefined,
    fields: ['id', 'name'],
  };

  await note(
    'a key is looked up',
    counter.read((view) => byHash(view, { hash: HASH })),
  );
  await note(
    'a workflow is looked up',
    counter.read((view) => getWorkflow(view, { teamId, id: at.workflowId })),
  );
  const queued = await note('a job is queued', enqueue());
  assert.ok(queued.outcome === 'queued');
  await note('a job is refused', enqueue());
  await note(
    'a job is looked up',
    counter.read((view) => getJob(view, { teamId, id: queued.job.id })),
  );
  const [claimed] = await note('a job is claimed', claim());
  assert.ok(claimed !== undefined);
  const held = heldOf(claimed.job);
  await note('there is nothing to claim', claim());
  await note('a running job is renewed', counter.write('jobs.beat', { ...CLAIM, held: [held] }));

  const records = new Map(people({ '1': 'Ada', '2': 'Grace' }).map(({ id, body }) => [id, body]));
  const compared = await note(
    'a batch is compared',
    counter.read((view) => compare(view, { held, ids: [...records.keys()] })),
  );
  const { writes } = planWrites({ ...compared, mode: 'replace', records });
  await note('a batch is written', counter.write('records.stage', { held, writes }));
  await note('a run with changes is published', counter.write('records.publish', { held, ...publish }));
  await enqueue();
  const [again] = (await claim()).value;
  assert.ok(again !== undefined);
  await note(
    'a run without changes is published',
    counter.write('records.publish', { held: heldOf(again.job), ...publish }),
  );
  await note(
    'a version is looked up',
    counter.read((view) => version(view, at)),
  );
  await note(
    'a page of records is read',
    counter.read((view) => page(view, { ...at, version: 1, afterSeq: 0, rows: 1_000 })),
  );
  const settings = { title: null, filter: null, entries: 'record', windowMs: 86_400_000, most: 50 } as const;
  for (const hash of ['open', 'ended']) {
    const made = await counter.write<{ feed: { id: string } }>('feeds.create', {
      ...at,
      ...settings,
      token: { hash, sealed: '' },
    });
    if (hash === 'ended') await counter.write('feeds.revoke', { ...at, id: made.value.feed.id });
  }
  const opened = await note(
    'the address of a feed is looked up',
    counter.read((view) => openFeed(view, { teamId, hash: 'open' })),
  );
  assert.ok(typeof opened === 'object');
  const ended = await note(
    'the address of a revoked feed is looked up',
    counter.read((view) => openFeed(view, { teamId, hash: 'ended' })),
  );
  assert.equal(ended, 'ended');

  const [name] = await note(
    'all lanes are searched',
    counter.read(async (view) => {
      const [due] = await dueTeams(view);
      assert.deepEqual(due?.teamId, teamId);
      return dueLanes(view, { teamId, webhookIds: await laneNames(view, { teamId }) });
    }),
  );
  assert.ok(name !== undefined);
  await note(
    'a lane is looked at',
    counter.read((view) => lane(view, name)),
  );
  const due = await note(
    'a lane is loaded',
    counter.read((view) => loadLane(view, { ...name, limits: MANY, ordered: false })),
  );
  const settle = (count: number) =>
    counter.write('deliveries.settle', {
      rows: due.splice(0, count).map((one) => settlementRow(settlement(one, 1, { state: 'delivered' }, OK))),
    });
  await note('a delivery is settled', settle(1));
  await note('three deliveries are settled together', settle(3));

  await note(
    'the first page of jobs',
    counter.read((view) => listJobs(view, { teamId, limit: 50 })),
  );
  await note(
    'the first page of jobs of a workflow',
    counter.read((view) => listJobs(view, { ...at, limit: 50 })),
  );
  await note(
    'the first page of events',
    counter.read((view) => history(view, { teamId, limit: 50 })),
  );
  await note(
    'the first page of workflows',
    counter.read((view) => listWorkflows(view, { teamId, limit: 10 })),
  );
  await note(
    'the first page of deliveries',
    counter.read((view) => searchDeliveries(view, { teamId, limit: 50 })),
  );
  await note(
    'the first page of failed deliveries of a webhook',
    counter.read((view) => searchDeliveries(view, { ...name, states: ['dead'], limit: 50 })),
  );
  await note(
    'schedules are looked at',
    counter.read((view) => schedulesDue(view, { limit: 100 })),
  );
  await note(
    'the next due job, schedule and delivery are looked for',
    counter.read(async (view) => {
      await nextJobDueAt(view);
      await nextScheduleDueAt(view);
      await nextDeliveryDueAt(view);
      await replaysRun(view);
    }),
  );
  await note(
    'abandoned jobs are looked for',
    counter.read((view) => abandoned(view, { nodeId: null })),
  );
  counter.close();
  return found;
}

/** Makes a database with the rows of one run, multiplied. Returns the team id. */
async function makePast(path: string, past: Past): Promise<string> {
  const store = await openStore(`sqlite:${path}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const { model, webhookId } = await makeModel(store);
  const { teamId } = model;
  const settlements = (await load(store, teamId, webhookId)).map((due) =>
    settlement(due, 1, { state: 'delivered' }, OK),
  );
  await store.deliveries.settle({ settlements });
  await store.close();
  const counter = new Counter(path, Date.now);
  const rows = async (sql: string, values: (string | number)[]) =>
    (await counter.read(({ db }) => db.all<Record<string, unknown>>(sql, ...values))).value;
  await multiply(rows, { past, model });
  counter.close();
  return teamId;
}
