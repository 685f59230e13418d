/** What the records of runs looked like, and the expectations that this suggests. */
import { found } from '../../model/error.ts';
import { suggestExpect } from '../../model/quality/suggest.ts';
import { profileResource, shownProfile } from '../../resources/profile.ts';
import { list, object, raw } from '../../std/shape.ts';
import { numberParameter, readGiven } from '../input/query.ts';
import { workflowIdFrom } from '../input/values.ts';
import { jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

/** Default and maximum number of profiles. A profile has at most 64 KiB. */
const VERSIONS = 20;
const MAX_VERSIONS = 100;

const query = {
  versions: numberParameter('versions', `Maximum number of profiles (default: ${VERSIONS})`, {
    least: 1,
    most: MAX_VERSIONS,
  }),
};

/** GET /v1/workflows/{workflowId}/profile */
export const readWorkflowProfile: Operation<KeyedCall> = {
  id: 'readWorkflowProfile',
  group: 'Workflows',
  summary: 'Read the profiles of a workflow',
  description:
    'Returns what the records of the runs that published the newest versions looked like, as numbers per field, newest first. ' +
    'A workflow keeps 500 profiles, also of versions that are not kept.',
  parameters: [pathParameter('workflowId', 'Workflow ID'), ...Object.values(query)],
  answer: jsonResponse(
    'Profiles',
    object({
      profiles: list(profileResource),
      expect: raw<object>({
        type: 'object',
        description:
          'Expectations that the runs of these profiles would have met: a value for `expect` of the definition',
      }),
    }),
  ),
  errors: { workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { store } = call.services;
    const at = { teamId: call.caller.teamId, workflowId: workflowIdFrom(call.params.workflowId) };
    found(await store.workflows.get({ teamId: at.teamId, id: at.workflowId }), 'workflow_not_found');
    const { versions = VERSIONS } = readGiven(call.query, query);
    const profiles = await store.profiles.list({ ...at, limit: versions });
    return { profiles: profiles.map(shownProfile), expect: suggestExpect(profiles) };
  },
};
