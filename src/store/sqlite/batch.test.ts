/** A batch is one transaction: failing operations, a full disk, a locked database. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { FencedError, Problem } from '../../model/error.ts';
import type { Webhook } from '../../model/webhook.ts';
import { silentLogger } from '../../observe/log.ts';
import { type Call, type CallResult, packError, runBatch, unpackError } from './batch.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';

let root: string;
let db: Database;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'flowhook-batch-'));
  migrate({ path: join(root, 'flowhook.db'), log: silentLogger, now: 0 });
  db = new Database(join(root, 'flowhook.db'), { synchronous: 'OFF', busyMs: 0 });
});
afterEach(async () => {
  db.close();
  await rm(root, { recursive: true });
});

const run = async (...calls: Call[]) =>
  (await runBatch(db, { now: 1, publicUrl: 'http://localhost', calls })).results;
const team = (slug: string): Call => ({ name: 'teams.ensure', input: { slug } });
const fenced: Call = {
  name: 'records.sweep',
  input: { held: { teamId: 't', jobId: 'j', attempt: 1 }, limit: 1 },
};
const slugs = () => db.all<{ slug: string }>('select slug from team order by slug').map(({ slug }) => slug);
const errorOf = (result: CallResult | undefined) =>
  result?.ok === false ? unpackError(result.error) : undefined;

/** Creates a key of an unknown team, which fails when the foreign keys are checked. */
const orphan: Call = {
  name: 'keys.create',
  input: { teamId: 'nobody', name: '', hash: 'h', prefix: '', scopes: [], expiresAt: null },
};

test('commits the operations around one that throws', async () => {
  const results = await run(team('a'), fenced, team('b'), orphan, team('c'));
  assert.deepEqual(
    results.map((result) => result.ok),
    [true, false, true, false, true],
  );
  assert.ok(errorOf(results[1]) instanceof FencedError);
  assert.match(errorOf(results[3])?.message ?? '', /FOREIGN KEY/);
  assert.deepEqual(slugs(), ['a', 'b', 'c']);
});

test('rolls back everything that a throwing operation wrote, and nothing else', async () => {
  db.exec(`insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at)
           values ('t', 'first', 'w', 1, 'waiting', 1, 1), ('t', 'second', 'w', 1, 'waiting', 1, 1)`);
  const rowOf = (deliveryId: string, outcome: string | null) => [
    't',
    deliveryId,
    'w',
    0,
    1,
    0,
    'delivered',
    null,
    null,
    undefined,
    1,
    1,
    outcome,
    200,
    null,
    null,
    null,
  ];
  const rows = [rowOf('first', 'ok'), rowOf('second', null)];
  const broken: Call = { name: 'deliveries.settle', input: { rows } };
  const state = () => db.get<{ state: string }>(`select state from delivery where id = 'first'`)?.state;
  assert.match(errorOf((await run(broken))[0])?.message ?? '', /NOT NULL/, 'the second row fails');
  assert.equal(state(), 'waiting');
  assert.deepEqual(
    (await run(team('a'), broken)).map((result) => result.ok),
    [true, false],
  );
  assert.equal(state(), 'waiting');
  assert.deepEqual(slugs(), ['a']);
});

test('fails the whole batch when the commit fails, and works afterwards', async () => {
  const results = await runDeferred(team('a'), orphan);
  for (const result of results) {
    const error = errorOf(result);
    assert.ok(error instanceof Problem && error.code === 'database_unavailable');
    assert.match((error.cause as Error).message, /FOREIGN KEY/);
  }
  assert.deepEqual(slugs(), []);
  assert.ok((await run(team('b')))[0]?.ok);
  assert.deepEqual(slugs(), ['b']);
});

test('fails the whole batch when the disk is full, and works when there is space again', async () => {
  assert.ok((await run(team('a')))[0]?.ok);
  const pages = db.get<{ page_count: number }>('pragma page_count')?.page_count ?? 0;
  db.exec(`pragma max_page_count = ${pages}`);
  const large: Call = { name: 'instance.claim', input: { name: 'large', value: 'x'.repeat(100_000) } };
  for (const result of await run(team('b'), large, team('c'))) {
    const error = errorOf(result);
    assert.ok(error instanceof Problem && error.code === 'disk_full');
    assert.match((error.cause as Error).message, /full/);
  }
  assert.deepEqual(slugs(), ['a']);
  db.exec('pragma max_page_count = 1000000');
  assert.ok((await run(team('b'), large, team('c'))).every((result) => result.ok));
});

test('commits a batch that deletes the team of a pending event', async () => {
  db.exec(`insert into team (id, slug, created_at) values ('t', 'a', 1)`);
  const made = await run({
    name: 'webhooks.subscribe',
    input: { teamId: 't', workflowId: null, url: 'http://localhost/', events: ['*'], secret: '', limit: 9 },
  });
  const { id } = (made[0] as { value: { webhook: Webhook } }).value.webhook;
  const results = await run(
    team('b'),
    { name: 'webhooks.pause', input: { teamId: 't', id, reason: '' } },
    { name: 'teams.retire', input: { teamId: 't', force: true } },
    { name: 'teams.delete', input: { teamId: 't', limit: 100 } },
  );
  assert.ok(results.every((result) => result.ok));
  assert.deepEqual(slugs(), ['b']);
});

test('writes nothing of a batch when the disk becomes full while its events are written', async () => {
  db.exec(`insert into team (id, slug, created_at) values ('t', 'a', 1)`);
  const subscribe = (name: string): Call => ({
    name: 'webhooks.subscribe',
    input: {
      teamId: 't',
      workflowId: null,
      url: `http://localhost/${name}`,
      events: ['*'],
      secret: '',
      limit: 9,
    },
  });
  const made = await run(subscribe('one'), subscribe('other'));
  const [one, other] = made.map((result) => (result as { value: { webhook: Webhook } }).value.webhook.id);
  const reason = 'x'.repeat(2_000_000);
  const pause = (id: string | undefined, text: string): Call => ({
    name: 'webhooks.pause',
    input: { teamId: 't', id, reason: text },
  });
  // The disk has space for the long reason in the webhook row and for the small event, but not for the large event.
  const { pages } = db.get<{ pages: number }>('select page_count as pages from pragma_page_count') ?? {};
  db.exec(`pragma max_page_count = ${Number(pages) + 730}`);
  for (const result of await run(pause(one, reason), pause(other, 'small'))) {
    assert.equal((errorOf(result) as Problem).code, 'disk_full');
  }
  assert.deepEqual(db.all('select 1 from event union all select 1 from delivery'), []);
});

test('fails the whole batch while another process holds the write lock', async () => {
  const other = new Database(join(root, 'flowhook.db'));
  other.exec('begin immediate');
  const error = errorOf((await run(team('a')))[0]);
  assert.ok(error instanceof Problem && error.code === 'database_unavailable');
  other.exec('rollback');
  other.close();
  assert.ok((await run(team('a')))[0]?.ok);
});

test('a Problem keeps its sentence, headers and cause between threads', async () => {
  const problem = new Problem('webhook_limit', {
    sentence: 'No more',
    headers: { 'x-limit': '1' },
    cause: new Error('why'),
  });
  const there = unpackError(structuredClone(packError(problem))) as Problem;
  assert.ok(there instanceof Problem);
  assert.deepEqual([there.code, there.status, there.message], ['webhook_limit', 400, 'No more']);
  assert.deepEqual(there.headers, { 'x-limit': '1' });
  assert.equal((there.cause as Error).message, 'why');
});

/**
 * Runs a batch whose foreign keys are checked at the commit. The pragma for this must be set within the transaction.
 */
async function runDeferred(...calls: Call[]): Promise<CallResult[]> {
  const deferring: Call = {
    name: 'instance.claim',
    input: {
      name: 'x',
      get value() {
        db.exec('pragma defer_foreign_keys = on');
        return 'y';
      },
    },
  };
  return (await run(deferring, ...calls)).slice(1);
}

test('calls that delete webhooks in one transaction share the limit of canceled deliveries', async () => {
  const ids = ['w1', 'w2', 'w3'];
  for (const id of ids) {
    db.run(
      `insert into webhook (team_id, id, url, events, event_set, fires_for, state, secret, created_at)
       values ('t', ?, ?, '[]', '', '|*|', 'active', '', 1)`,
      id,
      id,
    );
    for (let n = 0; n < 300; n += 1) {
      db.run(
        `insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at)
         values ('t', ?, ?, 1, 'waiting', 1, 1)`,
        `${id}-${n}`,
        id,
      );
    }
  }
  const calls = ids.map((id): Call => ({ name: 'webhooks.unsubscribe', input: { teamId: 't', ids: [id] } }));
  const results = await run(...calls);
  assert.deepEqual(
    results.map((result) => result.ok && result.value),
    [
      { removed: 1, more: false },
      { removed: 1, more: true },
      { removed: 1, more: true },
    ],
  );
  const canceled = db.get<{ count: number }>(
    `select count(*) as count from delivery where state = 'canceled'`,
  );
  assert.equal(canceled?.count, 500);
});
