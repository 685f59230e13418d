/** The agenda: which teams have something to do, so that nobody searches all teams. */

import assert from 'node:assert/strict';
import type { Store } from '../store.ts';
import type { AgendaItem } from '../transaction.ts';
import { subscribe } from './sending.ts';
import { caseWith, makeJob, makeWorkflow, type Open } from './setup.ts';

export function testAgenda(open: Open): void {
  const it = caseWith(open);

  it('a team is on no agenda before it has done anything', async ({ store }) => {
    await store.teams.ensure({ slug: 'acme' });
    for (const item of ITEMS) assert.deepEqual(await due(store, item), []);
  });

  it('a queued job puts its team on the agenda for jobs, usage and pruning', async ({ store }) => {
    const { teamId, workflowId } = await makeWorkflow(store);
    await store.teams.ensure({ slug: 'idle' });
    await makeJob(store, { teamId, workflowId });
    for (const item of ['jobs', 'usage', 'prune'] as const) {
      assert.deepEqual(await due(store, item), [teamId], item);
    }
    assert.deepEqual(await due(store, 'lanes'), [], 'no webhook waits');
  });

  it('a delivery puts its team on the agenda for lanes', async ({ store }) => {
    const at = await makeWorkflow(store);
    await subscribe(store, at, ['workflow_queued']);
    assert.deepEqual(await due(store, 'lanes'), []);
    await makeJob(store, at);
    assert.deepEqual(await due(store, 'lanes'), [at.teamId]);
  });
}

const ITEMS: readonly AgendaItem[] = ['jobs', 'lanes', 'usage', 'prune'];

/** The teams on an agenda within the next hour. */
async function due(store: Store, item: AgendaItem): Promise<string[]> {
  const teams = await store.agenda.due({ item, until: store.now() + 3_600_000, limit: 10 });
  return teams.map(({ teamId }) => teamId);
}
