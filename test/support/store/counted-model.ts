/** The rows that `multiply` copies for the counts of both databases. */
import { subscribe } from '../../../src/store/conformance/sending.ts';
import { makeWorkflow, publishRun } from '../../../src/store/conformance/setup.ts';
import type { Store } from '../../../src/store/store.ts';

/** The hash of the team's key. */
export const HASH = 'a'.repeat(64);

/** Makes a team with a key, a workflow with one published record, and a webhook whose first delivery waits. */
export async function makeModel(
  store: Store,
): Promise<{ model: { teamId: string; workflowId: string }; webhookId: string }> {
  const model = await makeWorkflow(store, { id: 'model' });
  await store.keys.create({
    teamId: model.teamId,
    name: 'key',
    hash: HASH,
    prefix: 'fh',
    scopes: ['read'],
    expiresAt: null,
  });
  const webhookId = await subscribe(store, model);
  await publishRun(store, model, { '1': 'Ada' });
  return { model, webhookId };
}
