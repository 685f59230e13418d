/** GET /v1/workflows/{workflowId}/data: all data of one workflow. */
import { Readable } from 'node:stream';
import type { Logger } from '../../observe/log.ts';
import { readAll } from '../../records/read.ts';
import { workflowIdFrom } from '../ids.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

export const readData: Operation<KeyedCall> = {
  id: 'readWorkflowData',
  group: 'Workflows',
  summary: 'Returns all data of one workflow',
  description: 'The last published version, whole. An empty array before the first run.',
  parameters: [pathParameter('workflowId', 'Workflow ID')],
  answer: jsonResponse('All data records', { type: 'array', items: { $ref: '#/components/schemas/Record' } }),
  refusals: { workflow_not_found: 'No workflow found' },

  async handle({ services, caller, params, request, reply }) {
    const workflowId = workflowIdFrom(params.workflowId);
    const { bytes } = await readAll(services.store, { teamId: caller.teamId, workflowId });
    reply.headers({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
    });
    if (request.method === 'HEAD') return reply.send();
    // The framework pauses the iteration while the client is slow, ends it when the client goes, and destroys
    // the socket when it throws after the first byte: the array is never closed early.
    const log = services.log.child({ requestId: request.id, teamId: caller.teamId, workflowId });
    return reply.send(Readable.from(logged(bytes, log), { objectMode: false }));
  },
};

async function* logged(bytes: AsyncIterable<Uint8Array>, log: Logger): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (err) {
    log.error({ err }, 'data.interrupted');
    throw err;
  }
}
