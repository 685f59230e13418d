/** The versions of a workflow's records that can be read. */

import { openVersion } from '../../records/read.ts';
import { versionResource } from '../../resources/workflow.ts';
import { cursorFrom, makeCursor } from '../cursor.ts';
import { workflowIdFrom } from '../ids.ts';
import { onePage, pageLimit, pageParameters } from '../list-page.ts';
import { pageResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

/** GET /v1/workflows/{workflowId}/versions */
export const listWorkflowVersions: Operation<KeyedCall> = {
  id: 'listWorkflowVersions',
  group: 'Workflows',
  summary: 'The versions that can be read, newest first',
  parameters: [pathParameter('workflowId', 'Workflow ID'), ...pageParameters()],
  answer: pageResponse('versions', versionResource),
  refusals: { field_invalid: 'A parameter has a bad value', workflow_not_found: 'No workflow found' },

  async handle({ services, caller, params, query, reply }) {
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
    const limit = pageLimit(query);
    const [before] = cursorFrom(query, [1]) ?? [];
    await openVersion(services.store, place);
    const found = await services.store.records.versions({
      ...place,
      limit: limit + 1,
      ...(before === undefined ? {} : { before }),
    });
    const path = `/v1/workflows/${encodeURIComponent(place.workflowId)}/versions`;
    const cursorOf = ({ number }: { number: number }) => makeCursor([number]);
    const versions = onePage({ query, reply }, found, { limit, path, cursorOf });
    return { versions: versions.map((one) => versionResource.of(one)) };
  },
};
