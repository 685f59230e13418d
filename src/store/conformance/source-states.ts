/** The states of sources: set and removed by hand, but never while a run would overwrite them. */
import assert from 'node:assert/strict';
import { CLAIM, caseWith, makeJob, makeRunning, makeWorkflow, type Open, publish } from './setup.ts';

export function testSourceStates(open: Open): void {
  const it = caseWith(open);
  const state = '{"since":"\\u0000 é"}';

  it('gives the next run the state that was set, and then keeps the state of that run', async ({ store }) => {
    const { teamId, workflowId: id } = await makeWorkflow(store);
    const other = await makeWorkflow(store, { team: 'other' });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state: null });
    assert.deepEqual(await store.workflows.setState({ teamId, id, state }), { outcome: 'set' });
    assert.deepEqual(await store.workflows.setState({ teamId, id, state }), { outcome: 'unchanged' });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state });
    assert.deepEqual(await store.workflows.state({ teamId: other.teamId, id }), { state: null });

    await makeJob(store, { teamId, workflowId: id });
    // A waiting job has not read the state yet.
    assert.deepEqual(await store.workflows.setState({ teamId, id, state: '{"since":2}' }), {
      outcome: 'set',
    });
    const [claimed] = await store.jobs.claim({ ...CLAIM, limit: 1 });
    assert.equal(claimed?.state, '{"since":2}');
    const held = { teamId, jobId: claimed?.job.id ?? '', attempt: 1 };
    assert.deepEqual(await store.workflows.setState({ teamId, id, state: null }), {
      outcome: 'running',
      jobId: held.jobId,
    });
    await publish(store, held, { state: '{"since":3}' });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state: '{"since":3}' });
    assert.deepEqual(await store.workflows.setState({ teamId, id, state: null }), { outcome: 'set' });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state: null });
  });

  it('changes a state only if it is still the expected one', async ({ store }) => {
    const { teamId, workflowId: id } = await makeWorkflow(store);
    const outcomes = await Promise.all(
      ['1', '2'].map((text) => store.workflows.setState({ teamId, id, state: text, expected: null })),
    );
    assert.deepEqual(outcomes.map(({ outcome }) => outcome).sort(), ['set', 'stale']);
    const reset = (expected: string) => store.workflows.setState({ teamId, id, state: null, expected });
    assert.equal((await reset('3')).outcome, 'stale');
    assert.equal((await reset(outcomes[0]?.outcome === 'set' ? '1' : '2')).outcome, 'set');
  });

  it('keeps the text of a state, which has numbers that a double would round', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId, workflowId: id } = at;
    const text = (last: number) => `{"since":1234567890123456789${last},"rate":1.50}`;
    await store.workflows.setState({ teamId, id, state: text(0) });
    await makeJob(store, at);
    const [claimed] = await store.jobs.claim({ ...CLAIM, limit: 1 });
    assert.equal(claimed?.state, text(0));
    await publish(store, { teamId, jobId: claimed?.job.id ?? '', attempt: 1 }, { state: text(1) });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state: text(1) });
    const reset = (expected: string) => store.workflows.setState({ teamId, id, state: null, expected });
    assert.equal((await reset(text(0))).outcome, 'stale');
    assert.equal((await reset(text(1))).outcome, 'set');
  });

  it('counts a state that a run left as null as none', async ({ store }) => {
    const at = await makeWorkflow(store);
    const { teamId, workflowId: id } = at;
    await publish(store, await makeRunning(store, at), { state: 'null' });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state: null });
    const set = await store.workflows.setState({ teamId, id, state, expected: null });
    assert.deepEqual(set, { outcome: 'set' });
  });

  it('lets a run and a change of its state never pass each other', async ({ store }) => {
    const { teamId, workflowId: id } = await makeWorkflow(store);
    for (let round = 1; round <= 10; round += 1) {
      await makeJob(store, { teamId, workflowId: id });
      const [set, jobs] = await Promise.all([
        store.workflows.setState({ teamId, id, state: String(round) }),
        store.jobs.claim({ ...CLAIM, limit: 1 }),
      ]);
      const [claimed = (await store.jobs.claim({ ...CLAIM, limit: 1 }))[0]] = jobs;
      assert.equal(set.outcome === 'set', claimed?.state === String(round), set.outcome);
      await publish(store, { teamId, jobId: claimed?.job.id ?? '', attempt: 1 });
    }
  });

  it('hides the state of an archived workflow, and keeps it for its return', async ({ store }) => {
    const at = await makeWorkflow(store, { mode: 'upsert' });
    const { teamId, workflowId: id } = at;
    await publish(store, await makeRunning(store, at), { state: '7' });
    await store.workflows.archive({ teamId, ids: [id] });
    assert.equal(await store.workflows.state({ teamId, id }), undefined);
    assert.equal(await store.workflows.state({ teamId, id: 'unknown' }), undefined);
    assert.deepEqual(await store.workflows.setState({ teamId, id, state }), { outcome: 'not_found' });
    await makeWorkflow(store, { mode: 'upsert' });
    assert.deepEqual(await store.workflows.state({ teamId, id }), { state: '7' });
  });
}
