/** Workflows: applying, listing and archiving definitions. */
import assert from 'node:assert/strict';
import { caseWith, definition, makeWorkflow, type Open } from './setup.ts';

export function testWorkflows(open: Open): void {
  const it = caseWith(open);

  it('returns the outcome of applying a definition', async ({ store, advance }) => {
    const { id: teamId } = await store.teams.ensure({ slug: 'default' });
    const input = { teamId, id: 'people', definition: definition(), hash: 'h1', nextRunAt: null };
    assert.equal(await store.workflows.apply(input), 'created');
    const created = await store.workflows.get(input);
    assert.deepEqual(created, {
      teamId,
      id: 'people',
      definition: definition(),
      definitionHash: 'h1',
      pausedAt: null,
      archivedAt: null,
      currentVersion: 0,
      oldestVersion: 0,
      nextRunAt: null,
      freshDueAt: null,
      staleSince: null,
      createdAt: store.now(),
      updatedAt: store.now(),
    });
    advance(1);
    assert.equal(await store.workflows.apply(input), 'unchanged');
    assert.deepEqual(await store.workflows.get(input), created);
    const changed = { ...input, hash: 'h2', definition: definition({ name: 'New' }) };
    assert.equal(await store.workflows.apply(changed), 'changed');
    assert.equal((await store.workflows.get(input))?.definition.name, 'New');
    assert.equal((await store.workflows.get(input))?.updatedAt, store.now());
  });

  it('changes a definition only if it is still the expected one', async ({ store }) => {
    const { teamId } = await makeWorkflow(store, { id: 'a' });
    const input = { teamId, id: 'a', definition: definition(), nextRunAt: null };
    const [one, other] = await Promise.all([
      store.workflows.apply({ ...input, hash: 'h1', expectedHash: '{}' }),
      store.workflows.apply({ ...input, hash: 'h2', expectedHash: '{}' }),
    ]);
    assert.deepEqual([one, other].sort(), ['changed', 'stale']);
    const stored = (await store.workflows.get({ teamId, id: 'a' }))?.definitionHash ?? '';
    assert.equal(stored, one === 'changed' ? 'h1' : 'h2');
    await store.workflows.archive({ teamId, ids: ['a'] });
    assert.equal(await store.workflows.apply({ ...input, hash: 'h3', expectedHash: stored }), 'stale');
    const missing = { ...input, id: 'b', hash: 'h', expectedHash: stored };
    assert.equal(await store.workflows.apply(missing), 'stale');
    assert.equal(await store.workflows.get({ teamId, id: 'b' }), undefined);
  });

  it('lists workflows by id, completely or after one of them', async ({ store }) => {
    const { teamId } = await makeWorkflow(store, { id: 'a' });
    // Sorted by bytes: capital letters first, non-ASCII characters last.
    for (const id of ['é', 'b', 'B', 'c']) await makeWorkflow(store, { id });
    const ids = async (page: { after?: string; limit?: number }) =>
      (await store.workflows.list({ teamId, limit: 100, ...page })).map(({ id }) => id);
    assert.deepEqual(await ids({}), ['B', 'a', 'b', 'c', 'é']);
    assert.deepEqual(await ids({ limit: 2 }), ['B', 'a']);
    assert.deepEqual(await ids({ after: 'a', limit: 2 }), ['b', 'c']);
    assert.deepEqual(await ids({ after: 'bb' }), ['c', 'é']);
  });

  it('hides an archived workflow until it is applied again', async ({ store }) => {
    const { teamId } = await makeWorkflow(store, { id: 'a' });
    await makeWorkflow(store, { id: 'b' });
    assert.equal(await store.workflows.archive({ teamId, ids: ['a', 'unknown'] }), 1);
    assert.equal(await store.workflows.archive({ teamId, ids: ['a'] }), 0);
    assert.equal(await store.workflows.get({ teamId, id: 'a' }), undefined);
    assert.deepEqual(
      (await store.workflows.list({ teamId, limit: 100 })).map((workflow) => workflow.id),
      ['b'],
    );
    assert.equal(await store.records.version({ teamId, workflowId: 'a' }), undefined);
    assert.deepEqual(
      await store.jobs.enqueue({ teamId, workflowId: 'a', origin: 'api', idempotencyKey: null }),
      { outcome: 'not_found' },
    );
    const same = { teamId, id: 'a', definition: definition(), hash: '{}', nextRunAt: null };
    assert.equal(await store.workflows.apply(same), 'restored');
    assert.equal((await store.workflows.get({ teamId, id: 'a' }))?.archivedAt, null);
  });

  it('lists for all teams what files are compared with', async ({ store }) => {
    const one = await makeWorkflow(store, { team: 'b', id: 'people' });
    const other = await makeWorkflow(store, { team: 'a', id: 'archived' });
    await store.workflows.archive({ teamId: other.teamId, ids: ['archived'] });
    assert.deepEqual(await store.workflows.applied({ limit: 100 }), [
      { teamId: one.teamId, id: 'people', definitionHash: '{}', sourceType: 'module' },
    ]);
  });

  it('lists definitions with a NUL, half a surrogate pair, or text that looks like one', async ({
    store,
  }) => {
    const names = ['a\0b', '\ud800', '\\u0000', 'plain'];
    for (const [at, name] of names.entries()) await makeWorkflow(store, { id: `w${at}`, name });
    assert.deepEqual(
      (await store.workflows.applied({ limit: 100 })).map(({ id, sourceType }) => [id, sourceType]),
      names.map((_, at) => [`w${at}`, 'module']),
    );
  });

  it('separates workflows with the same id in two teams', async ({ store }) => {
    const a = await makeWorkflow(store, { team: 'a', name: 'A' });
    const b = await makeWorkflow(store, { team: 'b', name: 'B' });
    assert.equal((await store.workflows.get({ teamId: a.teamId, id: 'people' }))?.definition.name, 'A');
    assert.equal((await store.workflows.get({ teamId: b.teamId, id: 'people' }))?.definition.name, 'B');
    assert.equal(await store.workflows.archive({ teamId: b.teamId, ids: ['people'] }), 1);
    assert.notEqual(await store.workflows.get({ teamId: a.teamId, id: 'people' }), undefined);
  });
}
