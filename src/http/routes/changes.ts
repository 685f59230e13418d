/** The changes of a workflow's records between two versions. */

import { openSpan, readChanges } from '../../records/changes.ts';
import { encoded } from '../../records/formats.ts';
import { changeResource } from '../../resources/workflow.ts';
import { list } from '../../std/shape.ts';
import { matchesTag } from '../caching.ts';
import { queryFormat } from '../data-query.ts';
import { workflowIdFrom } from '../ids.ts';
import { acceptedEncoding, acceptedFormat } from '../negotiate.ts';
import { jsonResponse, textContent } from '../openapi/content.ts';
import { queryNumber, requiredQuery } from '../query.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { bodyHeaders, sendStream, setValidators } from '../send-body.ts';

const FORMATS = ['json', 'ndjson'] as const;

/** GET /v1/workflows/{workflowId}/changes?since=V[&until=] */
export const readWorkflowChanges: Operation<KeyedCall> = {
  id: 'readWorkflowChanges',
  group: 'Workflows',
  summary: 'What was added, changed and removed since a version',
  description:
    'Net: a record that came and went in between is not told. First what was added and changed, then what was ' +
    'removed. The header `x-data-version` says up to which version: it is the next `since`.',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    {
      name: 'since',
      in: 'query',
      required: true,
      description: 'The version that the client has; 0: none',
      schema: { type: 'integer', minimum: 0 },
    },
    {
      name: 'until',
      in: 'query',
      description: 'A version, by default the newest',
      schema: { type: 'integer', minimum: 0 },
    },
    { name: 'format', in: 'query', description: 'Instead of `Accept`', schema: { enum: FORMATS } },
  ],
  answer: jsonResponse('The changes', list(changeResource), {}, { 'application/x-ndjson': textContent() }),
  refusals: {
    field_invalid: '`since` is missing, or a parameter has a bad value',
    workflow_not_found: 'No workflow found, or no such version of its data',
    version_pruned: 'The version `since` is no longer kept: read everything again',
  },

  async handle(call) {
    const { services, caller, request, reply } = call;
    const place = { teamId: caller.teamId, workflowId: workflowIdFrom(call.params.workflowId) };
    const format = queryFormat(call.query, FORMATS) ?? acceptedFormat(request.headers.accept, FORMATS);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    requiredQuery(call.query, 'since', 'the version that you have, or 0');
    const span = await openSpan(services.store, place, {
      since: queryNumber(call.query, 'since', { least: 0 }) ?? 0,
      until: queryNumber(call.query, 'until', { least: 0 }),
    });
    const { since, until } = span;
    const tag = `"${since}-${until.number}.${until.erasures}-changes-${format}-${encoding}"`;
    setValidators(reply, tag, until);
    if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send();
    reply.headers(bodyHeaders({ format, encoding, workflowId: place.workflowId, version: until.number }));
    if (request.method === 'HEAD') return reply.send();
    const changes = readChanges(services.store, place, span, format === 'ndjson' ? 'ndjson' : 'json');
    return sendStream(call, encoded(changes, encoding));
  },
};
