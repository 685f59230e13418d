/** The team and the key of the caller, with the limits that apply to them. */
import { Problem } from '../../model/error.ts';
import { meResource } from '../../resources/key.ts';
import { MAX_BODY_BYTES } from '../body.ts';
import { PAGE_SIZE } from '../list-page.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

/** GET /v1/me */
export const readMe: Operation<KeyedCall> = {
  id: 'readMe',
  group: 'Team',
  summary: 'Shows the team and the key that make this call, and the limits that hold for them',
  description: 'Takes every key that is good, whatever its scopes: a way to try one out.',
  answer: jsonResponse('The caller', meResource),

  async handle({ services: { store, webhooks, quotas }, caller: { teamId, keyId } }) {
    const team = await store.teams.get({ teamId });
    const own = await store.teams.quotas({ teamId });
    const key = await store.keys.get({ teamId, id: keyId });
    // Both were there a moment ago: the team may have been deleted since.
    if (team === undefined || key === undefined) throw new Problem('unauthorized');
    const { workflows, webhooks: hooks, keys, records, storedBytes, runningJobs } = { ...quotas, ...own };
    return meResource.of({
      team,
      key,
      limits: {
        defaultPageSize: PAGE_SIZE.usual,
        maxPageSize: PAGE_SIZE.most,
        maxBodyBytes: MAX_BODY_BYTES,
        maxWebhooksPerWorkflow: webhooks.limit,
        maxWorkflows: workflows,
        maxWebhooks: hooks,
        maxKeys: keys,
        maxRecords: records,
        maxStoredBytes: storedBytes,
        maxRunningJobs: runningJobs,
      },
    });
  },
};
