/** Concurrent calls of one team share transactions. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { EMPTY_TABLES, makeDatabase } from '../../../test/support/postgres.ts';
import { localAuthor } from '../../model/audit.ts';
import { FencedError, Problem } from '../../model/error.ts';
import type { AttemptLease } from '../../model/job.ts';
import { silentLogger } from '../../observe/log.ts';
import { authoredBy } from '../audited.ts';
import {
  CLAIM,
  failAttempt,
  heldOf,
  makeWorkflow,
  PUBLIC_URL,
  people,
  stageRecords,
} from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';

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

test('jobs of concurrent calls are queued in few transactions, each with its event', async () => {
  const all = await workflows(60);
  const results = await Promise.all(all.map(enqueue));
  assert.deepEqual([...new Set(results.map(({ outcome }) => outcome))], ['queued']);
  const jobs = await direct.get<{ jobs: number; transactions: number }>(
    'select count(*) as jobs, count(distinct xmin::text) as transactions from job',
  );
  // The first call has its own transaction; the calls behind it share a few transactions.
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

test('concurrent calls of one workflow queue one job, and all return it', async () => {
  const [at] = await workflows(1);
  const results = await Promise.all(Array.from({ length: 30 }, () => enqueue(at as never)));
  const queued = results.filter(({ outcome }) => outcome === 'queued');
  assert.equal(queued.length, 1);
  assert.deepEqual(
    new Set(results.map((result) => ('job' in result ? result.job.id : undefined))).size,
    1,
    'all calls return the same job',
  );
});

test('a locked workflow fails only its own call of the batch', async () => {
  const all = await workflows(20);
  const [locked, ...others] = all as [(typeof all)[number], ...typeof all];
  await inTransaction(pool, async (tx) => {
    await tx.all('select 1 from workflow where id = $1 for update', locked.workflowId);
    const refused = assert.rejects(
      enqueue(locked),
      (error) => error instanceof Problem && error.code === 'database_busy',
    );
    // The batch skips the locked workflow without waiting.
    const results = await Promise.all(others.map(enqueue));
    assert.deepEqual([...new Set(results.map(({ outcome }) => outcome))], ['queued']);
    await refused;
  });
});

for (const [failure, statement] of [
  ['ends the connection', 'perform pg_terminate_backend(pg_backend_pid())'],
  ['fails', `raise exception 'not now'`],
]) {
  test(`a commit that ${failure} fails all its calls, and is not repeated`, async (t) => {
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

test('a call of an unknown workflow does not affect the other calls', async () => {
  const all = await workflows(20);
  const { teamId } = all[0] as { teamId: string };
  const results = await Promise.all([{ teamId, workflowId: 'gone' }, ...all].map(enqueue));
  assert.equal(results[0]?.outcome, 'not_found');
  assert.deepEqual([...new Set(results.slice(1).map(({ outcome }) => outcome))], ['queued']);
});

test('different operations of a team share a transaction, each with its own outcome and audit line', async () => {
  const all = await workflows(12);
  const { teamId } = all[0] as { teamId: string };
  const subscription = { url: 'https://receiver.test/', events: ['*'], secret: 's', limit: 9 };
  const subscribed = await store.webhooks.subscribe({ teamId, workflowId: null, ...subscription });
  assert.ok(subscribed.outcome === 'created');
  const queued = all.slice(0, 6);
  for (const at of queued) await enqueue(at);
  const held = (await store.jobs.claim({ ...CLAIM, limit: 4 })).map(({ job }) => heldOf(job));
  const waiting = await store.jobs.list({ teamId, states: ['queued'], limit: 9 });
  assert.deepEqual([held.length, waiting.length], [4, 2]);
  const [stale, ...running] = held as [AttemptLease, ...AttemptLease[]];
  const authored = authoredBy(store, localAuthor('command'));

  const fails = running.map((one) => failAttempt(store, one));
  const fenced = assert.rejects(failAttempt(store, { ...stale, attempt: 9 }), FencedError);
  const cancels = waiting.map(({ id }) => authored.jobs.cancel({ teamId, id, by: 'Canceled by a test' }));
  const tests = Array.from({ length: 5 }, () => store.webhooks.test({ teamId, id: subscribed.webhook.id }));
  const calls = await Promise.all([...all.slice(6).map(enqueue), ...cancels, ...tests, ...fails]);
  await fenced;

  assert.deepEqual(
    calls.slice(0, 8).map((call) => (call as { outcome: string }).outcome),
    [...Array.from({ length: 6 }, () => 'queued'), 'canceled', 'canceled'],
  );
  const { lines } = await store.audit.list({ teamId, limit: 9 });
  assert.deepEqual(lines.map(({ target }) => target?.id).sort(), waiting.map(({ id }) => id).sort());
  const events = await store.events.list({ teamId, afterSequence: 0, limit: 100 });
  assert.deepEqual(
    events.map(({ sequence }) => sequence),
    events.map((_, n) => n + 1),
  );
  assert.equal(events.length, 6 + 4 + 6 + 2 + 5 + 3);
});

test('jobs that are published together have consecutive events and their own counts', async () => {
  const all = await workflows(10);
  await Promise.all(all.map(enqueue));
  const claimed = await store.jobs.claim({ ...CLAIM, limit: 10 });
  for (const [n, { job }] of claimed.entries()) {
    await stageRecords(store, heldOf(job), 'replace', people({ [`p${n}`]: 'Ada' }));
  }
  const published = await Promise.all(
    claimed.map(({ job }) => store.records.publish({ held: heldOf(job), state: undefined, fields: [] })),
  );
  assert.deepEqual([...new Set(published.map(({ outcome }) => outcome))], ['published']);
  const transactions = await direct.get<{ count: number }>(
    'select count(distinct xmin::text) as count from version',
  );
  assert.ok(Number(transactions?.count) < 10, `${transactions?.count} transactions`);
});
