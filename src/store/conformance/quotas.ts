/** Quotas of teams. */
import assert from 'node:assert/strict';
import type { OwnQuotas } from '../../model/quota.ts';
import type { Store } from '../store.ts';
import {
  CLAIM,
  caseWith,
  claimOne,
  definition,
  makeJob,
  makeWorkflow,
  type Open,
  people,
  publish,
  publishRun,
  stageRecords,
} from './setup.ts';

const REACHED = { name: 'Problem', code: 'quota_reached' };
const hook = { events: ['*'], secret: 'sealed', limit: 1_000 };
const NAMES = { a: 'Ada', b: 'Bea', c: 'Cleo' };

export function testQuotas(open: Open): void {
  const it = caseWith(open);

  async function teamWith(store: Store, quotas: OwnQuotas): Promise<string> {
    const { id: teamId } = await store.teams.ensure({ slug: 'default' });
    await store.teams.setQuotas({ teamId, quotas });
    return teamId;
  }

  const apply = (store: Store, teamId: string, id: string, hash = 'h') =>
    store.workflows.apply({ teamId, id, definition: definition(), hash, nextRunAt: null });

  it('replaces the quotas of a team', async ({ store }) => {
    const teamId = await teamWith(store, { workflows: 3, records: null });
    assert.deepEqual(await store.teams.quotas({ teamId }), { workflows: 3, records: null });
    await store.teams.setQuotas({ teamId, quotas: { runningJobs: 0 } });
    assert.deepEqual(await store.teams.quotas({ teamId }), { runningJobs: 0 });
    const { id: other } = await store.teams.ensure({ slug: 'other' });
    assert.deepEqual(await store.teams.quotas({ teamId: other }), {});
  });

  it('returns a team with its own quotas, until the team is retired', async ({ store }) => {
    const teamId = await teamWith(store, { workflows: 3, records: null });
    const team = { id: teamId, slug: 'default', quotas: { workflows: 3, records: null } };
    assert.deepEqual(await store.teams.withQuotas({ teamId }), team);
    await store.teams.setQuotas({ teamId, quotas: {} });
    assert.deepEqual(await store.teams.withQuotas({ teamId }), { ...team, quotas: {} });
    await store.teams.retire({ teamId, force: false });
    assert.equal(await store.teams.withQuotas({ teamId }), undefined);
  });

  it('creates and restores workflows up to the quota, and changes existing ones', async ({ store }) => {
    const teamId = await teamWith(store, { workflows: 2 });
    assert.equal(await apply(store, teamId, 'a'), 'created');
    assert.equal(await apply(store, teamId, 'b'), 'created');
    await assert.rejects(apply(store, teamId, 'c'), { ...REACHED, message: /quota of 2 workflows/ });
    assert.equal(await apply(store, teamId, 'a', 'changed'), 'changed');
    assert.equal(await store.workflows.archive({ teamId, ids: ['a'] }), 1);
    assert.equal(await apply(store, teamId, 'c'), 'created');
    await assert.rejects(apply(store, teamId, 'a'), REACHED);
    const { id: other } = await store.teams.ensure({ slug: 'other' });
    for (const id of ['a', 'b', 'c']) assert.equal(await apply(store, other, id), 'created');
    assert.equal((await store.teams.holdings({ teamId })).workflows, 2);
  });

  it('creates no more workflows than the quota in simultaneous calls', async ({ store, another }) => {
    const teamId = await teamWith(store, { workflows: 3 });
    const second = await another();
    try {
      const made = await Promise.allSettled(
        Array.from({ length: 10 }, (_, n) => apply(n % 2 === 0 ? store : second, teamId, `w${n}`)),
      );
      assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 3);
      assert.equal((await store.workflows.list({ teamId, limit: 100 })).length, 3);
    } finally {
      await second.close();
    }
  });

  it('subscribes webhooks up to the quota over all workflows; repeated calls succeed', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const { teamId } = await makeWorkflow(store);
    await store.teams.setQuotas({ teamId, quotas: { webhooks: 2 } });
    const subscribe = (to: { teamId: string; workflowId: string | null }, n: number) =>
      store.webhooks.subscribe({ ...to, ...hook, url: `https://a.test/${n}` });
    assert.equal((await subscribe(at, 1)).outcome, 'created');
    assert.equal((await subscribe({ teamId, workflowId: null }, 2)).outcome, 'created');
    await assert.rejects(subscribe(other, 3), { ...REACHED, message: /quota of 2 webhooks/ });
    assert.equal((await subscribe(at, 1)).outcome, 'existing');
    const [first] = await store.webhooks.list({ teamId, limit: 100 });
    const target = { teamId, id: first?.id ?? '' };
    await store.webhooks.pause({ ...target, reason: 'rest' });
    await assert.rejects(subscribe(other, 3), REACHED);
    await store.webhooks.unsubscribe({ teamId, ids: [target.id] });
    assert.equal((await subscribe(other, 3)).outcome, 'created');
    assert.equal((await store.teams.holdings({ teamId })).webhooks, 2);
  });

  it('creates keys up to the quota, without counting revoked and expired ones', async ({
    store,
    advance,
  }) => {
    const teamId = await teamWith(store, { keys: 2 });
    const key = { teamId, name: '', prefix: 'fh', scopes: ['read'] as const, expiresAt: null };
    const { id } = await store.keys.create({ ...key, hash: 'a' });
    await store.keys.create({ ...key, hash: 'b', expiresAt: store.now() + 5 });
    await assert.rejects(store.keys.create({ ...key, hash: 'c' }), {
      ...REACHED,
      message: /quota of 2 keys/,
    });
    assert.equal((await store.keys.create({ ...key, hash: 'a' })).id, id, 'the key exists already');
    assert.ok(await store.keys.rotate({ teamId, id, hash: 'd', prefix: 'fh', overlapMs: 1 }));
    advance(2);
    await assert.rejects(store.keys.create({ ...key, hash: 'c' }), REACHED);
    advance(5);
    await store.keys.create({ ...key, hash: 'c' });
    assert.equal((await store.teams.holdings({ teamId })).keys, 2);
  });

  it('rotates keys with an overlap up to one above the quota, and without an overlap always', async ({
    store,
    advance,
  }) => {
    const teamId = await teamWith(store, { keys: 2 });
    const key = { teamId, name: '', prefix: 'fh', scopes: ['read'] as const, expiresAt: null };
    const { id } = await store.keys.create({ ...key, hash: 'a' });
    const other = await store.keys.create({ ...key, hash: 'b' });
    const rotate = (old: string, hash: string, overlapMs = 1_000) =>
      store.keys.rotate({ teamId, id: old, hash, prefix: 'fh', overlapMs });
    const held = async () => (await store.teams.holdings({ teamId })).keys;
    assert.ok(await rotate(id, 'c'));
    const refused = { ...REACHED, message: /quota of 2 keys\. Rotate without an overlap/ };
    for (const old of [id, other.id]) await assert.rejects(rotate(old, 'd'), refused);
    assert.equal(await held(), 3);
    const next = await rotate(other.id, 'd', 0);
    assert.equal(await rotate('key_x', 'e'), undefined);
    assert.equal(await held(), 3);
    advance(1_001);
    const made = await Promise.allSettled([rotate(next?.id ?? '', 'e'), rotate(next?.id ?? '', 'f')]);
    assert.deepEqual(made.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    assert.equal(await held(), 3);
  });

  it('publishes records up to the quota over all workflows, and always fewer', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const { teamId } = at;
    assert.equal((await publishRun(store, at, NAMES)).outcome, 'published');
    await store.teams.setQuotas({ teamId, quotas: { records: 4 } });
    assert.equal((await publishRun(store, other, { a: 'Ada' })).outcome, 'published');
    assert.equal((await store.teams.holdings({ teamId })).records, 4);

    await makeJob(store, other);
    const held = await claimOne(store);
    await stageRecords(store, held, 'replace', people({ a: 'Ada', b: 'Bea' }));
    const refused = await publish(store, held);
    assert.equal(refused.outcome, 'guarded');
    const { error } = refused as { error: string };
    assert.match(error, /would have 5, which exceeds its quota `records` of 4 records/);
    assert.equal((await store.teams.holdings({ teamId })).records, 4);

    await store.teams.setQuotas({ teamId, quotas: { records: 1 } });
    assert.equal((await publishRun(store, at, { a: 'Ada', b: 'Bea' })).outcome, 'published');
    assert.equal((await store.teams.holdings({ teamId })).records, 3);
    await store.workflows.archive({ teamId, ids: ['other'] });
    assert.equal((await store.teams.holdings({ teamId })).records, 2);
  });

  it('publishes bytes up to the quota over all workflows, and always fewer', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'other' });
    const { teamId } = at;
    const held = async () => (await store.teams.holdings({ teamId })).storedBytes;
    const bytes = (names: Record<string, string>) =>
      people(names).reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
    const long = { a: 'Ädä'.repeat(9) };
    await publishRun(store, at, NAMES);
    await publishRun(store, other, { a: 'Ada' });
    assert.equal(await held(), bytes(NAMES) + bytes({ a: 'Ada' }));
    await store.teams.setQuotas({ teamId, quotas: { storedBytes: bytes(NAMES) + bytes(long) - 1 } });

    const job = await makeJob(store, other);
    assert.ok(job);
    const run = await claimOne(store);
    await stageRecords(store, run, 'replace', people(long));
    const refused = await publish(store, run);
    assert.equal(refused.outcome, 'guarded');
    const total = bytes(NAMES) + bytes(long);
    assert.match(
      (refused as { error: string }).error,
      new RegExp(`would have ${total}, .* quota .storedBytes. of ${total - 1} bytes of records`),
    );
    assert.equal(await held(), bytes(NAMES) + bytes({ a: 'Ada' }));
    await store.teams.setQuotas({ teamId, quotas: { storedBytes: total } });
    assert.equal((await publish(store, run)).outcome, 'published');
    assert.equal(await held(), total);

    await store.teams.setQuotas({ teamId, quotas: { storedBytes: 1 } });
    assert.equal((await publishRun(store, at, { a: 'Ada' })).outcome, 'published');
    assert.equal(await held(), bytes({ a: 'Ada' }) + bytes(long));
    await store.workflows.archive({ teamId, ids: ['other'] });
    assert.equal(await held(), bytes({ a: 'Ada' }));
  });

  it('starts jobs of a team up to its quota of running jobs', async ({ store }) => {
    const teamId = await teamWith(store, { runningJobs: 2 });
    const { id: otherId } = await store.teams.ensure({ slug: 'other' });
    for (const id of ['a', 'b', 'c', 'd']) {
      await makeJob(store, await makeWorkflow(store, { id }));
      await makeJob(store, await makeWorkflow(store, { id, team: 'other' }));
    }
    const claim = async (perTeam: number) => {
      const claimed = await store.jobs.claim({ ...CLAIM, perTeam });
      return claimed.map(({ job }) => job.teamId);
    };
    const first = await claim(3);
    assert.deepEqual(
      [first.filter((id) => id === teamId).length, first.filter((id) => id === otherId).length],
      [2, 3],
    );
    assert.equal((await store.teams.holdings({ teamId })).runningJobs, 2);
    assert.deepEqual(await claim(3), []);
    await store.teams.setQuotas({ teamId, quotas: { runningJobs: 4 } });
    assert.deepEqual(await claim(3), [teamId, teamId]);
    await store.teams.setQuotas({ teamId: otherId, quotas: { runningJobs: 0 } });
    assert.deepEqual(await claim(10), []);
    await store.teams.setQuotas({ teamId: otherId, quotas: {} });
    assert.deepEqual(await claim(10), [otherId]);
  });
}
