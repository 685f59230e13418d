/** What every driver must do when a person is erased. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import type { ChangesCursor, Store, TextPlace } from '../store.ts';
import {
  CLAIM,
  caseWith,
  failAttempt,
  makeRunning,
  makeWorkflow,
  type Open,
  publishRun,
  readVersion,
} from './setup.ts';

export function testErasure(open: Open): void {
  const it = caseWith(open);

  it('finds rows of every version by their text and by their id', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    await publishRun(store, at, { a: 'Countess', b: 'Bob' });
    await publishRun(store, at, { b: 'Bob' });
    const found = async (needles: string[], ids: string[]) => {
      const { rows } = await store.erasure.scanRecords({ ...at, needles, ids, after: null });
      return rows.map(({ id, addedIn, removedIn }) => `${id} ${addedIn}-${removedIn ?? ''}`);
    };
    assert.deepEqual(await found(['ada'], []), ['a 1-2']);
    assert.deepEqual(await found(['zzz'], ['a']), ['a 1-2', 'a 2-3']);
    assert.deepEqual(await found([], []), []);
    assert.deepEqual(await found(['bob', 'countess'], []), ['a 2-3', 'b 1-']);
  });

  it('ends a search, and begins where it is told', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const first = await store.erasure.scanRecords({ ...at, needles: ['ada'], ids: [], after: null });
    assert.equal(first.rows.length, 1);
    const second = await store.erasure.scanRecords({ ...at, needles: ['ada'], ids: [], after: first.next });
    assert.deepEqual(second, { rows: [], next: null });
  });

  it('removes a record from every version as if it had never been', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cy' });
    await publishRun(store, at, { a: 'Ada King', b: 'Bob', d: 'Di' });
    await publishRun(store, at, { b: 'Bobby', d: 'Di' });
    await publishRun(store, at, { a: 'Ada again', b: 'Bobby', d: 'Di' });
    const before = await store.records.version(at);
    const { rows } = await store.erasure.scanRecords({ ...at, needles: [], ids: ['a'], after: null });
    const seqs = [...new Set(rows.map(({ seq }) => seq))];
    assert.equal(seqs.length, 2, 'an id that returns is a new record');
    assert.equal(await store.erasure.remove({ ...at, seqs }), 3);
    assert.equal(await store.erasure.remove({ ...at, seqs }), 0, 'a second time there is nothing');

    const counts: unknown[] = [];
    for (const { number, records } of await store.records.versions({ ...at, limit: 10 })) {
      const read = await readVersion(store, { ...at, version: number });
      assert.equal(read.length, records.total, `version ${number}`);
      assert.ok(!JSON.stringify(read).includes('Ada'));
      counts.unshift(records);
    }
    assert.deepEqual(counts, [
      { total: 2, added: 2, changed: 0, removed: 0 },
      { total: 2, added: 1, changed: 0, removed: 1 },
      { total: 2, added: 0, changed: 1, removed: 0 },
      { total: 2, added: 0, changed: 0, removed: 0 },
    ]);
    const after = await store.records.version(at);
    assert.equal(after?.number, before?.number);
    assert.equal(after?.total, 2);
    assert.equal(after?.erasures, (before?.erasures ?? 0) + 1);
    const changed: string[] = [];
    let cursor: ChangesCursor | null = null;
    do {
      const page: Awaited<ReturnType<Store['records']['changes']>> = await store.records.changes({
        ...at,
        since: 1,
        until: 4,
        after: cursor,
        limit: 100,
      });
      changed.push(...page.rows.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== null);
    assert.deepEqual(changed, ['d', 'b', 'c']);
  });

  it('makes a run that is under way start over, and leaves the counts of the next version true', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const held = await makeRunning(store, at);
    const { rows } = await store.records.compare({ held, ids: ['a', 'e'] });
    const [ada] = rows;
    assert.ok(ada);
    const { seqs } = await store.records.stage({
      held,
      writes: [
        {
          kind: 'supersede',
          id: 'a',
          seq: ada.seq,
          addedIn: ada.addedIn,
          body: '{"id":"a","name":"Changed"}',
        },
        { kind: 'insert', id: 'e', body: '{"id":"e","name":"Eve"}' },
      ],
    });
    assert.equal(await store.erasure.remove({ ...at, seqs }), 3);
    await assert.rejects(store.records.stage({ held, writes: [] }), FencedError);

    const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
    assert.equal(job?.state, 'retrying');
    const [claimed] = await store.jobs.claim(CLAIM);
    assert.ok(claimed);
    const again = { teamId: at.teamId, jobId: held.jobId, attempt: claimed.job.attempt };
    while (!(await store.records.sweep({ held: again, limit: 100 })).done);
    const guards = { minRecords: 0, maxDropPercent: null };
    const published = await store.records.publish({
      held: again,
      guards,
      mode: 'replace',
      fields: [],
      state: undefined,
    });
    assert.equal(published.outcome, 'unchanged');
    assert.deepEqual(await readVersion(store, { ...at, version: 1 }), [{ id: 'b', name: 'Bob' }]);
  });

  it('finds texts in every place, and replaces only what is still the same', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    await failAttempt(store, await makeRunning(store, at), { error: 'No ADA@x.test here' });
    await failAttempt(store, await makeRunning(store, other), { error: 'No ada@x.test there' });
    const find = (place: TextPlace, workflowId: string | null = null) =>
      allTexts(store, { teamId: at.teamId, workflowId, place, needles: ['ada@'] });
    assert.equal((await find('jobError')).length, 2);
    assert.equal((await find('event')).length, 2);
    const [error] = await find('jobError', 'people');
    assert.deepEqual([error?.workflowId, error?.text], ['people', 'No ADA@x.test here']);
    const key = error?.key as string;
    const rewrite = (was: string) =>
      store.erasure.rewrite({
        teamId: at.teamId,
        place: 'jobError',
        texts: [{ key, was, text: '[erased]' }],
      });
    assert.equal(await rewrite('something else'), 0);
    assert.equal(await rewrite('No ADA@x.test here'), 1);
    assert.equal((await find('jobError')).length, 1);
    for (const place of ['response', 'attemptError', 'state', 'fields', 'jobLog', 'jobProgress'] as const) {
      assert.deepEqual(await find(place), [], place);
    }
    assert.deepEqual(
      await allTexts(store, { teamId: 'team_x', workflowId: null, place: 'event', needles: ['a'] }),
      [],
    );
  });

  it('finds a person in the log and the progress of a job, and replaces them there', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const said = ['Hello', 'No ADA@x.test here', 'Good-bye'];
    const lines = said.map((text, n) => ({ seq: n + 1, at: 1, level: 'info' as const, text }));
    const progress = { records: 1, bytes: 2, pages: null, message: 'Reading ada@x.test' };
    await store.jobs.report({ held, lines, progress });
    const find = (place: TextPlace, workflowId: string | null = 'people') =>
      allTexts(store, { teamId: at.teamId, workflowId, place, needles: ['ada@'] });
    for (const place of ['jobLog', 'jobProgress'] as const) {
      const [held, ...more] = await find(place);
      assert.ok(held && more.length === 0, place);
      assert.equal(held.workflowId, 'people');
      assert.deepEqual(await find(place, 'other'), []);
      const text = held.text.replace(/(No |Reading )ada@x.test/i, '[erased]');
      const texts = [{ key: held.key, was: held.text, text }];
      assert.equal(await store.erasure.rewrite({ teamId: at.teamId, place, texts }), 1);
      assert.deepEqual(await find(place), []);
    }
    await store.jobs.report({ held, lines: [{ seq: 4, at: 1, level: 'info', text: 'More' }] });
    const log = await store.jobs.log({ ...held, afterSeq: 0, limit: 10 });
    assert.deepEqual(
      log.map(({ text }) => text),
      ['Hello', '[erased] here', 'Good-bye', 'More'],
    );
    const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
    assert.equal(job?.progress?.message, '[erased]');
  });

  it('finds answers by the event that they answer', async ({ store }) => {
    const at = await makeWorkflow(store);
    const hook = { url: 'https://a.test/', events: ['*'], secret: 'sealed', limit: 10 };
    const { webhook } = (await store.webhooks.subscribe({ ...at, ...hook })) as { webhook: { id: string } };
    await publishRun(store, at, { a: 'Ada' });
    const due = await store.deliveries.load({ teamId: at.teamId, webhookId: webhook.id, limit: 10 });
    await store.deliveries.settle({
      settlements: due.map(({ teamId, id: deliveryId, webhookId, eventType }) => ({
        teamId,
        deliveryId,
        webhookId,
        attempt: 1,
        log: {
          startedAt: store.now(),
          durationMs: 1,
          outcome: 'ok',
          status: 200,
          error: null,
          response: `thanks for ${eventType}`,
        },
        next: { state: 'delivered' },
      })),
    });
    const texts = await allTexts(store, {
      teamId: at.teamId,
      workflowId: 'people',
      place: 'response',
      needles: ['"id":"a"'],
    });
    assert.deepEqual(
      texts.map(({ text }) => text),
      ['thanks for workflow_data_change'],
    );
    assert.match(texts[0]?.about ?? '', /"differences"/);
  });

  it('keeps who is suppressed by team and workflow, once, and makes runs start over', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { team: 'other' });
    const held = await makeRunning(store, at);
    const entries = [
      { workflowId: '', kind: 'email' as const, hash: 'h1' },
      { workflowId: 'people', kind: 'id' as const, hash: 'h2' },
      { workflowId: 'elsewhere', kind: 'id' as const, hash: 'h3' },
    ];
    await store.erasure.suppress({ teamId: at.teamId, entries });
    await store.erasure.suppress({ teamId: at.teamId, entries });
    assert.deepEqual(await store.erasure.suppressed(at), entries.slice(0, 2));
    assert.deepEqual(await store.erasure.suppressed(other), []);
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: held.jobId }))?.state, 'retrying');
  });

  it('ends a push that is under way: its sender has to send its records again', async ({ store }) => {
    const at = await makeWorkflow(store, { source: { type: 'push' } });
    const begun = await store.jobs.begin({ ...at, nodeId: 'node-a', leaseMs: 30_000, idempotencyKey: null });
    assert.equal(begun.outcome, 'begun');
    const { claimed } = begun as { claimed: { job: { id: string } } };
    const entries = [{ workflowId: '', kind: 'email' as const, hash: 'h1' }];
    await store.erasure.suppress({ teamId: at.teamId, entries });
    const job = await store.jobs.get({ teamId: at.teamId, id: claimed.job.id });
    assert.deepEqual([job?.state, job?.reason], ['failed', 'lost']);
  });

  it('keeps an audit for each team', async ({ store }) => {
    const at = await makeWorkflow(store);
    const entry = { action: 'erase', actor: 'cli', workflowId: null, subject: 'h1', details: { found: [] } };
    await store.erasure.audit({ teamId: at.teamId, ...entry });
    const [line, ...more] = await store.erasure.audits({ teamId: at.teamId, limit: 10 });
    assert.deepEqual({ ...line, id: '' }, { ...entry, id: '', createdAt: store.now() });
    assert.deepEqual(more, []);
    assert.deepEqual(await store.erasure.audits({ teamId: 'team_x', limit: 10 }), []);
  });

  it('scrubs while it is open, and goes on to work', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    const clean = await store.erasure.scrub({ traces: ['nobody@x.test'], rewriteBytes: 0 });
    assert.deepEqual(clean, { logEmptied: true, rewritten: false, tracesLeft: false });
    const large = await store.erasure.scrub({ traces: ['"name":"ADA"'], rewriteBytes: 0 });
    assert.deepEqual(large, { logEmptied: true, rewritten: false, tracesLeft: true });
    const there = await store.erasure.scrub({ traces: ['"name":"Ada"'], rewriteBytes: 1e9 });
    assert.deepEqual(there, { logEmptied: true, rewritten: true, tracesLeft: true });
    await publishRun(store, at, { a: 'Ada' });
    assert.deepEqual(await readVersion(store, { ...at, version: 2 }), [{ id: 'a', name: 'Ada' }]);
  });
}

async function allTexts(
  store: Store,
  input: { teamId: string; workflowId: string | null; place: TextPlace; needles: string[] },
) {
  const texts = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Store['erasure']['scanTexts']>> = await store.erasure.scanTexts({
      ...input,
      after,
    });
    texts.push(...page.texts);
    after = page.next;
  } while (after !== null);
  return texts;
}
