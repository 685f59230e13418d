/** The audit log: which changes write a line, its content, and how lines are found and pruned. */
import assert from 'node:assert/strict';
import type { Author } from '../../model/audit.ts';
import { authoredBy } from '../audited.ts';
import type { Store } from '../store.ts';
import { caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

const DAY_MS = 86_400_000;
const ADA: Author = { kind: 'command', id: null, name: 'ada', address: null, requestId: null };

export function testAudit(open: Open): void {
  const it = caseWith(open);

  it('audits changes by an author, but not those of the service itself', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const key = await makeKey(store, teamId);
    assert.deepEqual(await actions(store), []);

    const author: Author = { kind: 'key', id: key.id, name: null, address: '192.0.2.7', requestId: 'r-1' };
    await authoredBy(store, author).workflows.pause({ teamId, id: at.workflowId });
    const { lines, next } = await store.audit.list({ teamId, limit: 10 });
    assert.equal(next, null);
    assert.match(lines[0]?.id ?? '', /^aud_/);
    assert.deepEqual(lines, [
      {
        id: lines[0]?.id,
        teamId,
        team: 'default',
        action: 'workflows.pause',
        author: { ...author, name: 'laptop' },
        target: { kind: 'workflow', id: 'people' },
        summary: '',
        subject: null,
        details: {},
        createdAt: store.now(),
      },
    ]);
    assert.deepEqual((await store.audit.list({ teamId: 'team_x', limit: 10 })).lines, []);
  });

  it('writes no line for calls that change nothing', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const ada = authoredBy(store, ADA);
    const hook = { ...at, url: 'http://127.0.0.1/', events: ['*'], secret: 's', limit: 9 };
    const made = await ada.webhooks.subscribe(hook);
    const { id } = (made as { webhook: { id: string } }).webhook;
    const key = { teamId, name: '', hash: 'h', prefix: '', scopes: [], expiresAt: null };
    const { id: keyId } = await ada.keys.create(key);
    await ada.workflows.pause({ teamId, id: at.workflowId });
    await ada.webhooks.pause({ teamId, id, reason: 'because' });
    await ada.keys.revoke({ id: keyId });
    const before = await actions(store);
    assert.equal(before.length, 5, before.join());
    // Repeating the changes writes no line, even in the same millisecond, because all calls of a batch have the same
    // time.
    for (const laterMs of [0, 1_000]) {
      advance(laterMs);
      await ada.teams.ensure({ slug: 'default' });
      await ada.keys.create(key);
      await ada.keys.revoke({ id: keyId });
      await ada.keys.revoke({ id: 'key_x' });
      await ada.workflows.pause({ teamId, id: at.workflowId });
      await ada.workflows.archive({ teamId, ids: ['other'] });
      await ada.webhooks.pause({ teamId, id, reason: 'because' });
      await ada.webhooks.unsubscribe({ teamId, ids: ['wh_x'] });
      await ada.webhooks.rotate({ teamId, id: 'wh_x', secret: 's', overlapMs: 0 });
      await ada.jobs.cancel({ teamId, id: 'job_x', by: 'nobody' });
      assert.deepEqual(await actions(store), before);
    }
    assert.equal((await ada.webhooks.subscribe(hook)).outcome, 'existing');
    assert.deepEqual(await actions(store), [...before, 'webhooks.subscribe resumed']);
    await ada.webhooks.subscribe(hook);
    await ada.webhooks.resume({ teamId, id });
    assert.equal((await actions(store)).length, before.length + 1);
    const resumption = { teamId, id: at.workflowId, nextRunAt: null };
    await ada.workflows.resume(resumption);
    await ada.workflows.resume(resumption);
    assert.equal((await actions(store)).length, before.length + 2);
  });

  it('audits changes of webhooks, jobs and workflows', async ({ store, advance }) => {
    const at = await makeWorkflow(store);
    const { teamId } = at;
    const ada = authoredBy(store, ADA);
    const hook = { teamId, workflowId: null, url: 'http://127.0.0.1/', events: ['*'], secret: 's', limit: 9 };
    const { webhook } = (await ada.webhooks.subscribe(hook)) as { webhook: { id: string } };
    const { id } = webhook;
    await ada.webhooks.change({ teamId, id, settings: { ordered: true }, headers: 'sealed' });
    await ada.webhooks.rotate({ teamId, id, secret: 't', overlapMs: 3_600_000 });
    const test = { teamId, id, idempotencyKey: 'once' };
    const { deliveryId } = (await ada.webhooks.test(test)) as { deliveryId: string };
    advance(1_000);
    await ada.webhooks.test(test);
    await ada.deliveries.replay({ teamId, ids: [deliveryId] });
    const period = { since: 0, until: store.now() };
    await ada.deliveries.startReplay({ teamId, webhookId: id, states: ['dead'], ...period });
    await ada.webhooks.unsubscribe({ teamId, ids: [id] });
    const job = await makeJob(store, at);
    await ada.jobs.runNow({ teamId, id: job.id });
    await ada.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    await ada.jobs.cancel({ teamId, id: job.id, by: 'somebody' });
    await ada.workflows.archive({ teamId, ids: [at.workflowId] });
    assert.deepEqual(
      await actions(store),
      [
        'webhooks.subscribe to one event of all workflows',
        'webhooks.change ordered, headers',
        'webhooks.rotate new secret; both sign for 1 h',
        'webhooks.test ',
        'deliveries.replay ',
        'webhooks.unsubscribe ',
        ...['jobs.runNow', 'jobs.cancel'].map((action) => `${action} of workflow people`),
        'workflows.archive ',
      ].toSpliced(5, 0, 'deliveries.startReplay dead deliveries'),
    );
  });

  it('names the key of a sign-in as its author', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    const { id: keyId } = await makeKey(store, teamId);
    const author: Author = { kind: 'session', id: null, name: null, address: '192.0.2.7', requestId: 'r-1' };
    const somebody = authoredBy(store, author);
    await somebody.sessions.begin({ keyId, hash: 'a', forMs: 1_000 });
    await somebody.sessions.makeLink({ keyId, hash: 'b', forMs: 1_000 });
    await somebody.sessions.redeem({ link: 'b', hash: 'c', forMs: 1_000 });
    await somebody.sessions.redeem({ link: 'b', hash: 'd', forMs: 1_000 });
    await somebody.sessions.begin({ keyId: 'key_x', hash: 'e', forMs: 1_000 });
    const { lines } = await store.audit.list({ teamId, limit: 10 });
    assert.deepEqual(
      lines.map(({ action, author, target }) => [action, author.id, target?.id]),
      [
        ['sessions.begin', keyId, keyId],
        ['sessions.makeLink', null, keyId],
        ['sessions.begin', keyId, keyId],
      ],
    );
  });

  it('writes the line of a change only if the change is committed', async ({ store }) => {
    const { teamId } = await makeWorkflow(store);
    const ada = authoredBy(store, ADA);
    // A null name makes the statement fail, after other statements of its transaction have run.
    const bad = { teamId, name: 'x', hash: 'h', prefix: '', scopes: [], expiresAt: null };
    const both = await Promise.allSettled([
      ada.keys.create({ ...bad, name: null as unknown as string }),
      ada.keys.create(bad),
    ]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'fulfilled'],
    );
    assert.equal((await actions(store)).length, 1);
  });

  it('keeps one line about a deleted team, which belongs to the instance', async ({ store }) => {
    const { teamId } = await makeWorkflow(store, { team: 'acme' });
    const ada = authoredBy(store, ADA);
    await makeKey(ada, teamId);
    await ada.teams.retire({ teamId, force: false });
    while (!(await store.teams.delete({ teamId, limit: 100 })).done);
    const { lines } = await store.audit.list({ limit: 10 });
    assert.deepEqual(
      lines.map(({ team, action, target, summary, author }) => [team, action, target, summary, author.name]),
      [[null, 'teams.delete', { kind: 'team', id: teamId }, 'acme', 'ada']],
    );
  });

  it('finds lines by team, action, actor, target and time, in pages', async ({ store, advance }) => {
    const [one, other] = [await makeWorkflow(store), await makeWorkflow(store, { team: 'other' })];
    const key = await makeKey(store, one.teamId);
    const byKey = authoredBy(store, { ...ADA, kind: 'key', id: key.id });
    const since = store.now();
    for (const { teamId, workflowId: id } of [one, other]) {
      advance(1_000);
      await byKey.workflows.pause({ teamId, id });
      advance(1_000);
      await authoredBy(store, ADA).workflows.resume({ teamId, id, nextRunAt: null });
    }
    const found = async (filter: Omit<Parameters<Store['audit']['list']>[0], 'limit'>) => {
      const ids: string[] = [];
      let before: string | undefined;
      do {
        const page = await store.audit.list({
          ...filter,
          limit: 1,
          ...(before === undefined ? {} : { before }),
        });
        ids.push(...page.lines.map(({ team, action }) => `${team} ${action.slice('workflows.'.length)}`));
        before = page.next ?? undefined;
      } while (before !== undefined);
      return ids;
    };
    const all = ['other resume', 'other pause', 'default resume', 'default pause'];
    assert.deepEqual(await found({}), all);
    assert.deepEqual(await found({ teamId: one.teamId }), all.slice(2));
    assert.deepEqual(await found({ action: 'workflows.pause' }), [all[1], all[3]]);
    assert.deepEqual(await found({ actorId: key.id, teamId: one.teamId }), [all[3]]);
    assert.deepEqual(await found({ targetId: 'people', since: since + 2_000, until: since + 3_000 }), [
      all[1],
      all[2],
    ]);
    assert.deepEqual(await found({ targetId: 'nothing' }), []);
  });

  it('prunes old lines in steps', async ({ store, advance }) => {
    const { teamId, workflowId: id } = await makeWorkflow(store);
    const ada = authoredBy(store, ADA);
    for (let count = 0; count < 3; count += 1) {
      await ada.workflows.pause({ teamId, id });
      await ada.workflows.resume({ teamId, id, nextRunAt: null });
      advance(DAY_MS);
    }
    const prune = () => store.audit.prune({ teamId, olderMs: 2 * DAY_MS, limit: 3 });
    assert.equal((await prune()).done, false);
    assert.equal((await actions(store)).length, 3);
    assert.equal((await prune()).done, true);
    assert.equal((await actions(store)).length, 2);
  });
}

/** The actions and summaries of all teams, oldest first. */
async function actions(store: Store): Promise<string[]> {
  const { lines } = await store.audit.list({ limit: 100 });
  return lines.map(({ action, summary }) => `${action} ${summary}`).reverse();
}

function makeKey(store: Store, teamId: string) {
  return store.keys.create({ teamId, name: 'laptop', hash: 'k', prefix: '', scopes: [], expiresAt: null });
}
