/** Deleting a team. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import type { InspectedRequest } from '../../model/inspector.ts';
import type { Rule } from '../../model/rule.ts';
import type { PendingDecision } from '../operations/rules/decisions.ts';
import type { Store } from '../store.ts';
import { profileOf } from './profiles.ts';
import { load, OK, settle, subscribe } from './sending.ts';
import {
  caseWith,
  claimOne,
  countUsage,
  makeJob,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publish,
  publishRun,
  readVersion,
  stageRecords,
} from './setup.ts';

export function testRemovingTeams(open: Open): void {
  const it = caseWith(open);

  it('disables a team immediately', async ({ store, advance }) => {
    const at = await fill(store, 'acme');
    const { teamId } = at;
    await store.webhooks.test({
      teamId,
      id: (await store.webhooks.list({ teamId, limit: 100 }))[0]?.id ?? '',
    });
    await makeJob(store, at);
    assert.deepEqual(await store.teams.retire({ teamId, force: false }), {
      outcome: 'retired',
      running: [],
      slug: 'acme',
    });
    advance(3_600_000);
    assert.equal(await store.keys.byHash({ hash: 'key of acme' }), undefined);
    assert.deepEqual(await store.teams.list({ limit: 100 }), []);
    assert.equal(await store.teams.get({ teamId }), undefined);
    assert.equal(await store.teams.bySlug({ slug: 'acme' }), undefined);
    assert.deepEqual(await store.teams.retired({ limit: 100 }), [{ id: teamId, slug: 'acme' }]);
    assert.deepEqual(await store.jobs.claim({ nodeId: 'node-a', limit: 9, leaseMs: 1_000, perTeam: 9 }), []);
    assert.deepEqual(await store.schedules.due({ limit: 9 }), []);
    assert.deepEqual(await store.workflows.list({ teamId, limit: 100 }), []);
    assert.deepEqual(await store.webhooks.list({ teamId, limit: 100 }), []);
    assert.deepEqual(await store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: null }), {
      outcome: 'not_found',
    });
    assert.equal(await store.teams.retire({ teamId, force: false }), undefined);
    assert.notEqual((await store.teams.ensure({ slug: 'acme' })).id, teamId);
  });

  it('does not retire a team with running jobs, unless forced', async ({ store }) => {
    const at = await makeWorkflow(store, { team: 'acme' });
    const held = await makeRunning(store, at);
    const { teamId } = at;
    const running = [held.jobId];
    assert.deepEqual(await store.teams.retire({ teamId, force: false }), {
      outcome: 'running',
      running,
      slug: 'acme',
    });
    assert.equal((await store.teams.bySlug({ slug: 'acme' }))?.id, teamId);
    assert.deepEqual(await store.teams.retire({ teamId, force: true }), {
      outcome: 'retired',
      running,
      slug: 'acme',
    });
    await stageRecords(store, held, 'replace', people({ a: 'Ada' }));
    while (!(await store.teams.delete({ teamId, limit: 1 })).done);
    await assert.rejects(publish(store, held), FencedError);
  });

  it('deletes every row of a team in steps, and none of another team', async ({ store, rows }) => {
    const other = await fill(store, 'other');
    const before = await rows();
    const { teamId } = await fill(store, 'acme');
    const filled = await rows();
    for (const table of [
      'webhook_rule',
      'decision',
      'quiet_record',
      'quarantined',
      'profile',
      'feed',
      'ended_feed',
    ])
      assert.ok(filled[table], table);
    assert.notDeepEqual(filled, before);
    await assert.rejects(store.teams.delete({ teamId, limit: 5 }), /must be retired/);
    await store.teams.retire({ teamId, force: false });
    let last = total(await rows());
    for (let done = false; !done; ) {
      ({ done } = await store.teams.delete({ teamId, limit: 5 }));
      const left = total(await rows());
      assert.ok(last - left >= 1 && last - left <= 6, `${last - left} rows in one step`);
      last = left;
    }
    assert.deepEqual(await rows(), before);
    assert.deepEqual(await store.teams.delete({ teamId, limit: 5 }), { done: true });
    assert.deepEqual(await store.teams.retired({ limit: 100 }), []);
    assert.equal((await readVersion(store, { ...other, version: 2 })).length, 2);
    assert.notEqual(await store.keys.byHash({ hash: 'key of other' }), undefined);
  });
}

/** A team with rows in every table. */
async function fill(store: Store, team: string): Promise<{ teamId: string; workflowId: string }> {
  const at = await makeWorkflow(store, {
    team,
    nextRunAt: store.now() + 60_000,
    schedule: { everyMs: 60_000, missed: 'run' },
  });
  const { teamId } = at;
  const hash = `key of ${team}`;
  await store.keys.create({ teamId, name: '', hash, prefix: 'fh_', scopes: [], expiresAt: null });
  await store.teams.setQuotas({ teamId, quotas: { workflows: 9, records: null } });
  await store.teams.ensureSigningKey({ teamId, id: 'sk_1', publicKey: 'AA', privateKey: 'x', createdAt: 1 });
  const webhookId = await subscribe(store, { ...at, workflowId: null });
  await store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: 'once' });
  const held = await claimOne(store);
  await store.jobs.report({
    held,
    progress: { records: 1, bytes: 9, pages: null, message: null },
    lines: [{ seq: 1, at: 1, level: 'info', text: 'reading' }],
  });
  const seqs = await stageRecords(store, held, 'replace', people({ a: 'Ada', b: 'Grace' }));
  assert.equal(seqs.length, 2);
  const aside = { id: 'c', position: 3, body: '{"id":"c"}', bytes: 10, reasons: [] };
  await store.quarantine.stage({ held, first: 1, released: [], added: [aside] });
  await publish(store, held, { state: '{"page":1}', observed: { profile: profileOf(2) } });
  const rule: Rule = {
    filter: 'true',
    format: 'standard',
    template: null,
    firstVersion: null,
    cooldownMs: null,
    digest: null,
    timeZone: null,
  };
  const ruled = await store.webhooks.subscribe({
    ...at,
    url: 'https://a.test/rule',
    events: ['workflow_data_change'],
    secret: '',
    limit: 9,
    rule,
  });
  await publishRun(store, at, { b: 'Grace', c: 'Joan' });
  await beQuiet(store, teamId, ruled);
  const [due] = await load(store, teamId, webhookId);
  await settle(store, due, 1, { state: 'delivered' }, OK);
  await store.deliveries.startReplay({ teamId, webhookId, states: ['dead'], since: 0, until: store.now() });
  const inspector = { teamId, id: `insp_${team}`, status: 204, delayMs: 0, forMs: 86_400_000, most: 1 };
  await store.inspectors.create(inspector);
  await store.inspectors.storeRequest({ ...inspector, workflowId: null, request: REQUEST });
  const settings = { title: null, filter: null, entries: 'record', windowMs: 86_400_000, most: 50 } as const;
  for (const hash of [`old feed of ${team}`, `feed of ${team}`]) {
    const made = await store.feeds.create({ ...at, ...settings, token: { hash, sealed: '' } });
    assert.ok(made.outcome === 'created' && made.feed !== undefined);
    if (hash.startsWith('old')) await store.feeds.revoke({ ...at, id: made.feed.id });
  }
  await store.erasure.suppress({ teamId, entries: [{ workflowId: '', kind: 'id', hash: 'x' }] });
  await store.audit.add({ change: { teamId, action: 'records.erase', target: null, summary: '' } });
  await countUsage(store, { graceMs: 0, limit: 100 });
  return at;
}

/** Takes a step of the pending decision, which leaves a quiet record. */
async function beQuiet(
  store: Store,
  teamId: string,
  ruled: Awaited<ReturnType<Store['webhooks']['subscribe']>>,
): Promise<void> {
  assert.ok('webhook' in ruled);
  const { decisions } = await store.decisions.pending({ teamId, limit: 1, now: store.now() });
  const [decision] = decisions;
  assert.equal(decision?.webhookId, ruled.webhook.id);
  const { webhookId, workflowId, sequence, turn, rewrites, revision } = decision as PendingDecision;
  const row = {
    workflowId: workflowId ?? '',
    id: 'a',
    until: 1,
    sent: null,
    newest: '{}',
    sequence,
    revision,
    matches: null,
  };
  const step = { webhookId, workflowId, sequence, turn, rewrites, quiet: { set: [row] }, progress: {} };
  assert.deepEqual(await store.decisions.step({ teamId, steps: [step] }), [true]);
}

const REQUEST: InspectedRequest = {
  method: 'POST',
  path: '/',
  headers: {},
  body: '',
  bodyBytes: 0,
  truncated: false,
  signature: { verdict: 'absent', message: '', webhookId: null },
};

function total(rows: Record<string, number>): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0);
}
