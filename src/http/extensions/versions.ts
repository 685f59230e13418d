/** The versions of a workflow's records that can be read. */
import { openVersion } from '../../records/read.ts';
import { toIso } from '../../std/clock.ts';
import { cursorFrom, makeCursor, nextLink } from '../cursor.ts';
import { workflowIdFrom } from '../ids.ts';
import { queryNumber } from '../number-query.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

/** GET /v1/workflows/{workflowId}/versions */
export const listWorkflowVersions: Operation<KeyedCall> = {
  id: 'listWorkflowVersions',
  group: 'Workflows',
  summary: 'The versions that can be read, newest first',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    {
      name: 'limit',
      in: 'query',
      description: `At most so many, ${DEFAULT_LIMIT} by default; \`Link\` leads to the next`,
      schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
    },
    {
      name: 'cursor',
      in: 'query',
      description: 'From the `Link` of the answer before',
      schema: { type: 'string' },
    },
  ],
  answer: jsonResponse(
    'The versions',
    {
      type: 'object',
      required: ['versions'],
      properties: { versions: { type: 'array', items: { $ref: '#/components/schemas/Version' } } },
    },
    { Link: 'With `rel="next"`, when `limit` left something out' },
  ),
  refusals: { field_invalid: 'A parameter has a bad value', workflow_not_found: 'No workflow found' },

  async handle({ services, caller, params, query, reply }) {
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(params.workflowId) };
    const limit = queryNumber(query, 'limit', { least: 1, most: MAX_LIMIT }) ?? DEFAULT_LIMIT;
    const [before] = cursorFrom(query, [1]) ?? [];
    await openVersion(services.store, place);
    const found = await services.store.records.versions({
      ...place,
      limit: limit + 1,
      ...(before === undefined ? {} : { before }),
    });
    const versions = found.slice(0, limit);
    const last = versions.at(-1);
    if (found.length > limit && last !== undefined) {
      const path = `/v1/workflows/${encodeURIComponent(place.workflowId)}/versions`;
      reply.header('link', nextLink(path, query, makeCursor([last.number])));
    }
    return {
      versions: versions.map(({ number, jobId, publishedAt, records }) => ({
        number,
        jobId,
        publishedAt: toIso(publishedAt),
        records,
      })),
    };
  },
};
