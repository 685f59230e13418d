/** Calls of one team that come at the same time, in one transaction. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { Problem } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import { makeWorkflow, PUBLIC_URL } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { Database, inTransaction, openPool } from './database.ts';

const { url, drop } = await makeDatabase();
const store = await openStore(url, { publicUrl: () => PUBLIC_URL, log: silentLogger, poolSize: 4 });
const pool = openPool({ url, size: 2, log: silentLogger });
const direct = new Database(pool);
after(async () => {
  await Promise.all([store.close(), pool.end()]);
  await drop();
});
beforeEach(() => direct.exec(EMPTY_TABLES));

const enqueue = (at: { teamId: string; workflowId: string }) =>
  store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null });

function workflows(count: number): Promise<{ teamId: string; workflowId: string }[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => makeWorkflow(store, { id: `w${n}` })));
}

test('calls that wait for a connection are queued in few transactions, each job with its event', async () => {
  const all = await workflows(60);
  const results = await Promise.all(all.map(enqueue));
  assert.deepEqual([...new Set(results.map(({ outcome }) => outcome))], ['queued']);
  const jobs = await direct.get<{ jobs: number; transactions: number }>(
    'select count(*) as jobs, count(distinct xmin::text) as transactions from job',
  );
  // Three of the team may run at once: what comes behind them goes together.
  assert.equal(jobs?.jobs, 60);
  assert.ok(Number(jobs?.transactions) <= 10, `${jobs?.transactions} transactions`);
  const events = await store.events.list({ teamId: all[0]?.teamId as string, afterSequence: 0, limit: 100 });
  assert.deepEqual(
    events.map(({ sequence }) => sequence),
    Array.from({ length: 60 }, (_, n) => n + 1),
  );
  assert.deepEqual(
    new Set(events.map(({ jobId }) => jobId)),
    new Set(results.map((result) => ('job' in result ? result.job.id : undefined))),
  );
});

test('of calls of one workflow that come together one is queued, and the others are told of it', async () => {
  const [at] = await workflows(1);
  const results = await Promise.all(Array.from({ length: 30 }, () => enqueue(at as never)));
  const queued = results.filter(({ outcome }) => outcome === 'queued');
  assert.equal(queued.length, 1);
  assert.deepEqual(
    new Set(results.map((result) => ('job' in result ? result.job.id : undefined))).size,
    1,
    'all name the same job',
  );
});

test('a workflow that is locked refuses its own call and none of those that came with it', async () => {
  const all = await workflows(20);
  const [locked, ...others] = all as [(typeof all)[number], ...typeof all];
  await inTransaction(pool, async (tx) => {
    await tx.all('select 1 from workflow where id = $1 for update', locked.workflowId);
    const refused = assert.rejects(
      enqueue(locked),
      (error) => error instanceof Problem && error.code === 'database_busy',
    );
    // All that may run at once are waited for by then, so that it takes some of these along.
    const told = await Promise.all(others.map(enqueue));
    assert.deepEqual([...new Set(told.map(({ outcome }) => outcome))], ['queued']);
    await refused;
  });
});

for (const [what, statement] of [
  ['ends the connection', 'perform pg_terminate_backend(pg_backend_pid())'],
  ['is refused', `raise exception 'not now'`],
]) {
  test(`a commit that ${what} refuses all whose calls it was of, and nothing is done again`, async (t) => {
    const all = await workflows(60);
    await direct.exec(
      `create sequence commits;
       create function fail() returns trigger language plpgsql as $$
         begin perform nextval('commits'); ${statement}; return null; end $$;
       create constraint trigger fail after insert on job deferrable initially deferred
         for each row execute function fail()`,
    );
    t.after(() => direct.exec('drop trigger fail on job; drop function fail; drop sequence commits'));
    const results = await Promise.allSettled(all.map(enqueue));
    assert.deepEqual([...new Set(results.map(({ status }) => status))], ['rejected']);
    const commits = await direct.get<{ last_value: number }>('select last_value from commits');
    assert.ok(Number(commits?.last_value) <= 10, `${commits?.last_value} commits`);
  });
}

test('a workflow that is not there is told so, and takes nothing from the others', async () => {
  const all = await workflows(20);
  const { teamId } = all[0] as { teamId: string };
  const results = await Promise.all([{ teamId, workflowId: 'gone' }, ...all].map(enqueue));
  assert.equal(results[0]?.outcome, 'not_found');
  assert.deepEqual([...new Set(results.slice(1).map(({ outcome }) => outcome))], ['queued']);
});
