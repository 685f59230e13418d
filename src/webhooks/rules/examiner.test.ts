/** Filters of readers, and trials of rules. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Records, setUpRules } from '../../../test/support/webhooks/rules.ts';
import { DEFAULT_RULE, type Rule } from '../../model/rule.ts';
import { silentLogger } from '../../observe/log.ts';
import { openReader } from '../../store/open.ts';
import { type Examiner, ExaminerThread, examinerHere } from './examiner.ts';

const HOUR_MS = 3_600_000;
const price = (values: Record<string, number>): Records =>
  Object.fromEntries(Object.entries(values).map(([id, price]) => [id, { price }]));

async function withExaminer(t: TestContext) {
  const set = await setUpRules(t);
  const { store, databaseUrl } = set;
  const publicUrl = () => 'https://flowhook.test';
  const examiner = new ExaminerThread({ store, databaseUrl, publicUrl, log: silentLogger });
  t.after(() => examiner.stop());
  return { ...set, examiner, publicUrl };
}

async function newestChange({ store, teamId }: Awaited<ReturnType<typeof withExaminer>>) {
  const { events } = await store.events.history({ teamId, types: ['workflow_data_change'], limit: 1 });
  const [event] = events;
  assert.ok(event);
  return event;
}

test('an event is returned with the differences that match, as a webhook would receive it', async (t) => {
  const set = await withExaminer(t);
  const filter = 'record.price < 50';
  const webhook = await set.subscribe({ filter, firstVersion: 'send' });
  await set.publish(price({ a: 40, b: 60, c: 30 }));
  await set.engine().tick();
  const { teamId, examiner } = set;
  const event = await newestChange(set);
  const { body, ...found } = await examiner.examineEvent({ teamId, event, filter });
  assert.deepEqual(found, { matches: true, matched: 2, examined: 3, reason: null, mistake: null });
  assert.deepEqual(JSON.parse(body ?? 'null'), (await set.sent(webhook))[0]);
  const other = await examiner.examineEvent({ teamId, event, filter: 'record.price < 5' });
  assert.deepEqual([other.matches, other.body, other.reason], [false, null, '0 of 3 differences match']);
});

test('all differences of an event are examined, unless its reader gives up', async (t) => {
  const set = await withExaminer(t);
  await set.publish(Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`r${n}`, { n }])));
  const event = await newestChange(set);
  const asked = { teamId: set.teamId, event, filter: 'record.n == 4999' };
  assert.equal((await set.examiner.examineEvent(asked)).matched, 1);
  const signal = AbortSignal.abort(new Error('The client has gone'));
  await assert.rejects(set.examiner.examineEvent({ ...asked, signal }), /The client has gone/);
});

test('records that were erased are not found in pages that were read before', async (t) => {
  const set = await withExaminer(t);
  await set.publish(price({ a: 40, b: 60 }));
  const { store, at, teamId, examiner } = set;
  const event = await newestChange(set);
  const asked = { teamId, event, filter: 'record.price > 0' };
  assert.equal((await examiner.examineEvent(asked)).matched, 2);
  await store.erasure.remove({ ...at, seqs: [1] });
  assert.equal((await examiner.examineEvent(asked)).matched, 1);
});

test('if the version was deleted, the differences in the event are examined, and the reason says so', async (t) => {
  const set = await withExaminer(t);
  const { publish, store, at, teamId, examiner } = set;
  const numbered = (from: number) =>
    Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`r${n}`, { n: n + from }]));
  await publish(numbered(0));
  await publish(numbered(1_000));
  const keep = { keepVersions: 1, keepMs: 0, graceMs: 0 };
  for (let done = false; !done; ) ({ done } = await store.records.prune({ ...at, ...keep, limit: 500 }));
  const filter = 'previous.n == 3 || previous.n == 150';
  const { body, ...found } = await examiner.examineEvent({ teamId, event: await newestChange(set), filter });
  const reason = 'Only the first 100 of 200 differences were examined, because the version was deleted';
  assert.deepEqual(found, { matches: true, matched: 1, examined: 100, reason, mistake: null });
  assert.deepEqual(JSON.parse(body ?? 'null').data.differences, [
    { type: 'changed', id: 'r3', fields: [{ key: 'n', value: 1_003, previousValue: 3 }] },
  ]);
});

test('rows of changes are filtered', async (t) => {
  const { examiner, at } = await withExaminer(t);
  const row = (id: string, before: number | null, after: number | null) => ({
    id,
    version: 2,
    before: before === null ? null : `{"id":"${id}","price":${before}}`,
    after: after === null ? null : `{"id":"${id}","price":${after}}`,
  });
  const rows = [row('a', 60, 40), row('b', 60, 55), row('c', null, 40), row('d', 40, null)];
  const filter = 'fallsBelow(previous.price, record.price, 50) || change == "removed"';
  assert.deepEqual(await examiner.matchingRows({ ...at, filter, rows }), [rows[0], rows[3]]);
  assert.deepEqual(await examiner.matchingRows({ ...at, filter, rows: [] }), []);
});

test('a rule is tried on the last events, with its cooldown', async (t) => {
  const set = await withExaminer(t);
  const { publish, advance, examiner, teamId, at } = set;
  const rule: Rule = { ...DEFAULT_RULE, filter: 'record.price < 50', cooldownMs: HOUR_MS };
  await publish(price({ a: 60, b: 60 }));
  await publish(price({ a: 40, b: 60 }));
  advance(1_000);
  await publish(price({ a: 30, b: 60 }));
  advance(1_000);
  await publish(price({ a: 30, b: 90 }));
  advance(HOUR_MS);
  const { workflowId } = at;
  const types = ['workflow_data_change'] as const;
  const tried = await examiner.tryRule({ teamId, rule, workflowId, types, last: 10 });
  assert.deepEqual(
    tried.map(({ sent, matched, examined, reason, cooldownEnded }) => ({
      sent,
      counts: [matched, examined],
      reason,
      cooldownEnded,
    })),
    [
      { sent: false, counts: [null, null], reason: 'The first version is skipped', cooldownEnded: false },
      { sent: true, counts: [1, 1], reason: null, cooldownEnded: false },
      {
        sent: false,
        counts: [0, 1],
        reason: '0 of 1 difference matches. 1 record is in a cooldown',
        cooldownEnded: false,
      },
      { sent: false, counts: [0, 1], reason: '0 of 1 difference matches', cooldownEnded: false },
      { sent: true, counts: [1, 1], reason: null, cooldownEnded: true },
    ],
  );
  const [deferred] = tried.slice(-1);
  assert.equal(JSON.parse(deferred?.body ?? 'null').id, deferred?.eventId);
  const last = await examiner.tryRule({ teamId, rule, workflowId, types, last: 1 });
  assert.deepEqual(
    last.map(({ reason }) => reason),
    ['0 of 1 difference matches'],
  );
});

test('a trial shows exactly what a webhook then receives', async (t) => {
  const set = await withExaminer(t);
  const template = { text: `\${record.id} costs \${record.price}`, matched: `\${data.matched}` };
  const rule: Rule = {
    ...DEFAULT_RULE,
    filter: 'record.price < 50',
    format: 'template',
    template,
    firstVersion: 'send',
  };
  const webhook = await set.subscribe(rule);
  await set.publish(price({ a: 40, b: 60 }));
  await set.engine().tick();
  const [tried] = await set.examiner.tryRule({
    teamId: set.teamId,
    rule,
    types: ['workflow_data_change'],
    last: 5,
  });
  assert.deepEqual(JSON.parse(tried?.body ?? 'null'), (await set.sent(webhook))[0]);
});

test('a trial gathers digests as a webhook does, and shows an open one as it is now', async (t) => {
  const set = await withExaminer(t);
  const rule: Rule = {
    ...DEFAULT_RULE,
    filter: 'record.price < 50',
    firstVersion: 'send',
    digest: { everyMs: HOUR_MS },
  };
  const webhook = await set.subscribe(rule);
  await set.publish(price({ a: 40, b: 60 }));
  await set.engine().tick();
  set.advance(HOUR_MS / 2);
  await set.publish(price({ a: 60, b: 30 }));
  await set.engine().tick();
  set.advance(HOUR_MS / 2);
  await set.engine().tick();
  await set.publish(price({ a: 45, b: 30 }));
  await set.engine().tick();
  const tried = await set.examiner.tryRule({
    teamId: set.teamId,
    rule,
    types: ['workflow_data_change'],
    last: 5,
  });
  const open = new Date(set.store.now() + HOUR_MS).toISOString();
  assert.deepEqual(
    tried.map(({ type, sent, reason }) => [type, sent, reason]),
    [
      ['workflow_data_change', false, 'Gathered: 1 of 2 differences matches'],
      ['workflow_data_change', false, 'Gathered: 1 of 2 differences matches'],
      ['webhook_digest', true, null],
      ['workflow_data_change', false, 'Gathered: 1 of 1 difference matches'],
      ['webhook_digest', false, `Sent at ${open}, with everything that matches until then`],
    ],
  );
  const dataOf = (body: string | null | undefined) => JSON.parse(body ?? 'null').data;
  const [received] = (await set.sent(webhook)) as { data: object }[];
  assert.deepEqual({ ...dataOf(tried[2]?.body), webhookId: webhook }, received?.data);
  assert.deepEqual([dataOf(tried[4]?.body).matched, dataOf(tried[4]?.body).records], [1, 1]);
});

test('a command evaluates in its own thread, with the same results', async (t) => {
  const set = await withExaminer(t);
  await set.publish(price({ a: 40, b: 60 }));
  const { store, databaseUrl, publicUrl, teamId } = set;
  const reader = await openReader(databaseUrl);
  t.after(() => reader.close());
  const here: Examiner = await examinerHere({ store, reader, publicUrl });
  const asked = { teamId, event: await newestChange(set), filter: 'record.price < 50' };
  assert.deepEqual(await here.examineEvent(asked), await set.examiner.examineEvent(asked));
});
