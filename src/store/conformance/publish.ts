/** Publishing a run: expectations, the state for the next run, and events. */
import assert from 'node:assert/strict';
import type { JobFinding, Otherwise } from '../../model/quality/expect.ts';
import { profileOf } from './profiles.ts';
import {
  allEvents,
  CLAIM,
  caseWith,
  expecting,
  failAttempt,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  PUBLIC_URL,
  people,
  publish,
  publishRun,
  stageRecords,
} from './setup.ts';

export function testPublishing(open: Open): void {
  const it = caseWith(open);

  it('expects a minimum number of records', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada' });
    const held = await makeRunning(store, at);
    await store.records.remove({ held, seqs: [1] });
    const expected = { expect: expecting({ min: 1 }) };
    const published = await publish(store, held, { expected, state: '{"later":true}' });
    assert.equal(published.outcome, 'guarded');
    assert.match(
      (published as { error: string }).error,
      /0 records, fewer than `expect\.records\.min` \(1\)/,
    );
    assert.equal((await store.jobs.get({ teamId: at.teamId, id: held.jobId }))?.state, 'running');
    assert.equal((await store.records.version(at))?.number, 1);
    assert.equal((await publish(store, held)).outcome, 'published');
  });

  it('expects no larger drop of the total in percent', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid', d: 'Dan' });
    const held = await makeRunning(store, at);
    await store.records.remove({ held, seqs: [1, 2, 3] });
    const dropping = (drop: number) => publish(store, held, { expected: { expect: expecting({ drop }) } });
    const refused = await dropping(74);
    assert.match(
      (refused as { error: string }).error,
      /1 record after a drop by 75 %, more than `expect\.records\.drop` \(74%\)/,
    );
    assert.equal((await dropping(75)).outcome, 'published');
  });

  it('stores what a run does not meet, whether it is refused or published', async ({ store }) => {
    const finding: JobFinding = {
      expectation: 'type',
      field: 'price',
      found: 'n/a',
      limit: 'number',
      count: 1,
      examples: ['a'],
      drift: false,
    };
    const at = await makeWorkflow(store);
    const judged = async (otherwise: Otherwise) => {
      const held = await makeRunning(store, at);
      await stageRecords(store, held, 'replace', people({ a: 'Ada' }));
      const expected = { expect: { ...expecting({ max: 0 }), otherwise }, findings: [finding] };
      const published = await publish(store, held, { expected });
      const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
      return { held, published, findings: job?.findings };
    };
    const ofBoth = [
      { ...finding, expectation: 'records.max', field: null, found: 1, limit: 0, examples: [] },
      finding,
    ];
    const refused = await judged('refuse');
    assert.equal(refused.published.outcome, 'guarded');
    assert.deepEqual(refused.findings, ofBoth);
    await failAttempt(store, refused.held, { reason: 'guard' });
    assert.deepEqual((await store.jobs.get({ teamId: at.teamId, id: refused.held.jobId }))?.findings, ofBoth);

    const { published, findings } = await judged('warn');
    const records = { total: 1, added: 1, changed: 0, removed: 0 };
    assert.deepEqual(published, { outcome: 'published', version: 1, records, findings: ofBoth });
    assert.deepEqual(findings, ofBoth);
    const events = await allEvents(store, at.teamId);
    assert.deepEqual(
      events.slice(-3).map(({ type }) => type),
      ['workflow_data_change', 'workflow_expectation_failed', 'workflow_finished'],
    );
    const { data } = events.at(-2)?.parsed ?? {};
    assert.deepEqual([data?.version, data?.findings, data?.truncated], [1, ofBoth, false]);
    assert.match(
      String(data?.error),
      /^1 record, more than `expect\.records\.max` \(0\); `price` of 1 record is not/,
    );

    await publishRun(store, at, { a: 'Ada' });
    assert.equal((await store.jobs.list({ teamId: at.teamId, limit: 1 }))[0]?.findings, null);
  });

  it('reports how the records of a run have drifted, if it publishes', async ({ store }) => {
    const drift = (expectation: string, field: string | null): JobFinding => {
      return { expectation, field, found: 1, limit: '2 to 3', count: 1, examples: [], drift: true };
    };
    const failed = { ...drift('type', 'price'), found: 'n/a', limit: 'number', drift: false };
    const drifts = [drift('new', 'vat'), drift('filled', 'price'), drift('records', null)];
    const at = await makeWorkflow(store);
    const run = async (names: Record<string, string>, findings: JobFinding[]) => {
      const held = await makeRunning(store, at);
      await stageRecords(store, held, 'replace', people(names));
      const expected = { expect: { ...expecting({}), otherwise: 'warn' as const }, findings };
      const published = await publish(store, held, { expected, observed: { profile: profileOf(1), drifts } });
      return { published, findings: (await store.jobs.get({ teamId: at.teamId, id: held.jobId }))?.findings };
    };
    const [ofSchema, ofPrice, ofRun] = drifts;
    const first = await run({ a: 'Ada' }, [failed]);
    assert.deepEqual(first.findings, [failed, ofSchema, ofRun], 'the expectation about `price` has said it');
    const events = await allEvents(store, at.teamId);
    assert.deepEqual(
      events.slice(-4).map(({ type, parsed }) => [type, parsed.data.findings]),
      [
        ['workflow_data_change', undefined],
        ['workflow_schema_changed', [ofSchema]],
        ['workflow_expectation_failed', [failed, ofRun]],
        ['workflow_finished', undefined],
      ],
    );
    const second = await run({ a: 'Eve' }, []);
    assert.deepEqual(second.findings, [ofSchema, ofPrice, ofRun]);
    assert.equal((await run({ a: 'Eve' }, [])).findings, null, 'a run that changes nothing has no profile');
  });

  it('passes the state of a published run to the next one', async ({ store }) => {
    const at = await makeWorkflow(store);
    const run = async (state: string | undefined, end: 'publish' | 'fail') => {
      await makeJob(store, at);
      const [claimed] = await store.jobs.claim(CLAIM);
      const job = claimed?.job as { id: string; attempt: number };
      const held = { teamId: at.teamId, jobId: job.id, attempt: job.attempt };
      if (end === 'publish') await publish(store, held, { state });
      else await failAttempt(store, held);
      return claimed?.state;
    };
    assert.equal(await run('{"since":5}', 'publish'), null);
    assert.equal(await run(undefined, 'publish'), '{"since":5}');
    assert.equal(await run(undefined, 'fail'), '{"since":5}');
    assert.equal(await run('null', 'publish'), '{"since":5}');
    assert.equal(await run(undefined, 'publish'), null);
  });

  it('reports the life of a job in order, with its changes', async ({ store }) => {
    const at = await makeWorkflow(store, { id: 'Größe 1' });
    await publishRun(store, at, { a: 'Ada', b: 'Bob', c: 'Cid' });
    await publishRun(store, at, { a: 'Anna', c: 'Cid', d: 'Dan' });
    await publishRun(store, at, { a: 'Anna', c: 'Cid', d: 'Dan' });
    const events = await allEvents(store, at.teamId);
    const names = ['workflow_queued', 'workflow_started', 'workflow_data_change', 'workflow_finished'];
    assert.deepEqual(
      events.map((event) => event.type),
      [...names, ...names, ...names.filter((name) => name !== 'workflow_data_change')],
    );
    const [change, finished] = events.slice(6, 8);
    const published = {
      version: 2,
      records: { total: 3, added: 1, changed: 1, removed: 1 },
      dataUrl: `${PUBLIC_URL}/v1/workflows/Gr%C3%B6%C3%9Fe%201/data`,
    };
    const data: Record<string, unknown> = change?.parsed.data ?? {};
    const { state, finishedAt } = data;
    assert.deepEqual(data, {
      ...finished?.parsed.data,
      ...published,
      previousVersion: 1,
      changesUrl: `${PUBLIC_URL}/v1/workflows/Gr%C3%B6%C3%9Fe%201/changes?since=1&until=2`,
      differences: [
        { type: 'changed', id: 'a', fields: [{ key: 'name', value: 'Anna', previousValue: 'Ada' }] },
        {
          type: 'added',
          id: 'd',
          fields: [
            { key: 'id', value: 'd' },
            { key: 'name', value: 'Dan' },
          ],
        },
        {
          type: 'removed',
          id: 'b',
          fields: [
            { key: 'id', previousValue: 'b' },
            { key: 'name', previousValue: 'Bob' },
          ],
        },
      ],
      truncated: false,
    });
    assert.equal(state, 'finished');
    assert.equal(finished?.parsed.finishedAt, finishedAt);
    assert.deepEqual(events.at(-1)?.parsed.data.records, { total: 3, added: 0, changed: 0, removed: 0 });
  });

  it('keeps the body of a large change under 20 kB and marks it as truncated', async ({ store }) => {
    const at = await makeWorkflow(store);
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`p${n}`, 'x']));
    await publishRun(store, at, many);
    await publishRun(store, at, { big: 'x'.repeat(100_000) });
    const changes = (await allEvents(store, at.teamId)).filter(
      (event) => event.type === 'workflow_data_change',
    );
    const [first, second] = changes.map(
      (event) => event.parsed.data as { differences: unknown[]; truncated: boolean },
    );
    assert.deepEqual([first?.differences.length, first?.truncated], [100, true]);
    assert.deepEqual([second?.differences.length, second?.truncated], [0, true]);
    for (const event of changes) assert.ok(Buffer.byteLength(event.body) < 20_000);
  });
}
