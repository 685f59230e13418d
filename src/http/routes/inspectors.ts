/** Inspectors: temporary webhook receivers of this service. */

import { randomBytes } from 'node:crypto';
import { found, Problem } from '../../model/error.ts';
import {
  EXAMPLE_INSPECTOR,
  INSPECTOR_MS,
  INSPECTOR_STATUS,
  type Inspector,
  MAX_INSPECTED,
  MAX_INSPECTED_BYTES,
  MAX_INSPECTOR_DELAY_MS,
  MAX_INSPECTORS,
} from '../../model/inspector.ts';
import { messageResource } from '../../resources/error.ts';
import {
  inspectedRequestResource,
  inspectorResource,
  inspectorResponse,
  shownInspector,
} from '../../resources/inspector.ts';
import { list, object } from '../../std/shape.ts';
import { bodyFields, readBeginning } from '../input/body.ts';
import { byNumber, listOperation } from '../input/list-page.ts';
import { numberParameter } from '../input/query.ts';
import { idFrom, invalid, keyOfPath, wholeFrom } from '../input/values.ts';
import { jsonBody, jsonResponse, RETRY_AFTER, textContent } from '../openapi/content.ts';
import {
  type Answer,
  type Call,
  type KeyedCall,
  type Method,
  type Operation,
  pathParameter,
} from '../route.ts';
import { disconnectSignal } from '../server/exchange.ts';

const DEFAULT_STATUS = 204;

const parameters = [pathParameter('inspectorId', 'Inspector ID')];
const errors = { inspector_not_found: 'No inspector found' };

/** POST /v1/inspectors */
export const createInspector: Operation<KeyedCall<'inspection'>> = {
  id: 'createInspector',
  group: 'Inspectors',
  summary: 'Create an inspector',
  description:
    'Creates a temporary webhook receiver, which stores requests and checks their signatures. To try webhooks without ' +
    `a receiver of your own, subscribe its \`url\`. An inspector stores the newest ${MAX_INSPECTED} requests and is ` +
    `deleted after 24 hours. Limit: ${MAX_INSPECTORS} per team.`,
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        status: { ...inspectorResponse.status.schema, default: DEFAULT_STATUS },
        delayMs: { ...inspectorResponse.delayMs.schema, default: 0 },
      },
    },
    { required: false, example: EXAMPLE_INSPECTOR },
  ),
  answer: jsonResponse('Inspector created', inspectorResource, { location: 'URL of the inspector' }),
  errors: { field_invalid: 'A field is not valid, or the team has reached its limit of inspectors' },

  async handle(call) {
    const {
      services: { store, inspection },
      caller: { teamId },
      reply,
    } = call;
    const { status = DEFAULT_STATUS, delayMs = 0 } = responseFrom(await bodyFields(call));
    const made = await store.inspectors.create({
      teamId,
      // This ID is random, because it is the inspector's only protection. Other IDs are ordered and can be guessed.
      id: `insp_${randomBytes(16).toString('hex')}`,
      status,
      delayMs,
      forMs: INSPECTOR_MS,
      most: MAX_INSPECTORS,
    });
    if (made === undefined) {
      throw new Problem('inspector_limit', {
        sentence: `The team has reached its limit of ${MAX_INSPECTORS} inspectors. Delete one first`,
      });
    }
    reply.header('location', `/v1/inspectors/${made.id}`);
    return shownInspector(inspection, made, await inspection.refusal());
  },
};

/** GET /v1/inspectors */
export const listInspectors: Operation<KeyedCall<'inspection'>> = {
  id: 'listInspectors',
  group: 'Inspectors',
  summary: 'List inspectors',
  description: 'Returns all inspectors of the team, oldest first.',
  answer: jsonResponse('All inspectors', object({ inspectors: list(inspectorResource) })),

  async handle({ services: { store, inspection }, caller: { teamId } }) {
    const inspectors = await store.inspectors.list({ teamId });
    const refusal = inspectors.length === 0 ? null : await inspection.refusal();
    return { inspectors: inspectors.map((one) => shownInspector(inspection, one, refusal)) };
  },
};

/** GET /v1/inspectors/{inspectorId} */
export const readInspector: Operation<KeyedCall<'inspection'>> = {
  id: 'readInspector',
  group: 'Inspectors',
  summary: 'Read an inspector',
  parameters,
  answer: jsonResponse('Inspector', inspectorResource),
  errors,

  async handle(call) {
    const { inspection } = call.services;
    return shownInspector(inspection, await inspectorOf(call), await inspection.refusal());
  },
};

/** PATCH /v1/inspectors/{inspectorId} */
export const updateInspector: Operation<KeyedCall<'inspection'>> = {
  id: 'updateInspector',
  group: 'Inspectors',
  summary: 'Update an inspector',
  description:
    'Changes the status and the delay of the responses of an inspector, for example to try out retries, a ' +
    '410 or the circuit breaker.',
  parameters,
  requestBody: jsonBody(
    {
      type: 'object',
      minProperties: 1,
      properties: { status: inspectorResponse.status.schema, delayMs: inspectorResponse.delayMs.schema },
    },
    { example: EXAMPLE_INSPECTOR },
  ),
  answer: jsonResponse('Inspector updated', inspectorResource),
  errors: { ...errors, field_invalid: 'A field is not valid' },

  async handle(call) {
    const { store, inspection } = call.services;
    const changes = responseFrom(await bodyFields(call, 'a JSON object with `status` or `delayMs`'));
    if (Object.keys(changes).length === 0) invalid('Send `status` or `delayMs`');
    const { teamId, id } = await inspectorOf(call);
    const changed = found(await store.inspectors.change({ teamId, id, ...changes }), 'inspector_not_found');
    return shownInspector(inspection, changed, await inspection.refusal());
  },
};

/** DELETE /v1/inspectors/{inspectorId} */
export const deleteInspector: Operation<KeyedCall> = {
  id: 'deleteInspector',
  group: 'Inspectors',
  summary: 'Delete an inspector',
  description: 'Also deletes the requests that the inspector has stored.',
  parameters,
  answer: jsonResponse('Inspector deleted', messageResource),
  errors,

  async handle(call) {
    const wasThere = await call.services.store.inspectors.remove(keyOfPath(call, 'insp'));
    if (!wasThere) throw new Problem('inspector_not_found');
    return { message: 'Inspector deleted' };
  },
};

/** GET /v1/inspectors/{inspectorId}/requests */
export const listInspectedRequests = listOperation({
  id: 'listInspectedRequests',
  group: 'Inspectors',
  summary: 'List requests to an inspector',
  description: 'Returns the stored requests, newest first, with the result of the signature check.',
  name: 'requests',
  resource: inspectedRequestResource,
  order: byNumber,
  parameters,
  filters: { after: numberParameter('after', 'Only requests with a higher `number`') },
  size: { usual: 20, most: MAX_INSPECTED },
  errors,
  async rows(call, range) {
    const { teamId, id } = await inspectorOf(call);
    return call.services.store.inspectors.requests({ teamId, id, ...range });
  },
  show: (request) => inspectedRequestResource.of(request),
});

async function inspectorOf(call: KeyedCall): Promise<Inspector> {
  const { teamId, id } = keyOfPath(call, 'insp');
  const inspector = found(await call.services.store.inspectors.find({ id }), 'inspector_not_found');
  if (inspector.teamId !== teamId) throw new Problem('inspector_not_found');
  return inspector;
}

function responseFrom({ status, delayMs }: Record<string, unknown>): { status?: number; delayMs?: number } {
  const delay = { least: 0, most: MAX_INSPECTOR_DELAY_MS };
  return {
    ...(status !== undefined && { status: wholeFrom(status, '`status`', INSPECTOR_STATUS) }),
    ...(delayMs !== undefined && { delayMs: wholeFrom(delayMs, '`delayMs`', delay) }),
  };
}

/** In bytes. */
const BOUNDS = { most: MAX_INSPECTED_BYTES, discarded: 1_048_576 };

/** GET, POST and other methods of /inspect/{address} */
export function inspectBy(method: Method): Operation<Call<'inFlight' | 'inspection'>> {
  const name = `${method[0]}${method.slice(1).toLowerCase()}`;
  return {
    id: `inspect${name}`,
    open: true,
    group: 'Inspectors',
    summary: `Send ${method === 'OPTIONS' ? 'an' : 'a'} ${method} request to an inspector`,
    description:
      'Needs no key: anyone who knows the URL can send requests. The inspector stores the request, waits for ' +
      'its `delayMs`, and returns its `status` (200 to 599; default: 204).',
    parameters: [pathParameter('address', 'Inspector ID')],
    answer: stored('Request stored; the inspector is set to return 200', { example: '' }),
    otherAnswers: {
      204: { description: 'Request stored' },
      default: stored('Request stored; the inspector is set to return this status'),
    },
    errors: {
      request_malformed: 'Request body ended too early',
      inspector_not_found: 'No inspector found',
      overloaded: {
        description: 'Too many requests to inspectors at the moment',
        headers: { 'retry-after': RETRY_AFTER },
      },
    },

    async handle(call) {
      const { services, request, reply } = call;
      const address = idFrom('insp', call.params.address);
      const status = await services.inspection.receive(address, {
        method: request.method,
        path: request.raw.url ?? '',
        headers: joined(request.raw.headersDistinct),
        read: async () => {
          const { bytes, size, isWhole } = await readBeginning(request.raw, BOUNDS);
          if (!isWhole) reply.header('connection', 'close');
          return { bytes, size, truncated: size > BOUNDS.most };
        },
        onWait: () => services.inFlight.rest(reply.raw),
        gone: disconnectSignal(call),
      });
      // The response contains nothing from the request, because otherwise anybody could build a page on this origin.
      return reply
        .code(status)
        .headers({ 'cache-control': 'no-store', 'content-security-policy': "default-src 'none'; sandbox" })
        .type('text/plain; charset=utf-8')
        .send('Stored by an inspector\n');
    },
  };
}

function stored(description: string, example: { example?: string } = {}): Answer {
  return { description, content: { 'text/plain': { ...textContent(), ...example } } };
}

function joined(headers: NodeJS.Dict<string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, values = []]) => [name, values.join(', ')]));
}
