/** Receives requests for an inspector from anybody who knows its address, and answers as it is configured to. */
import { Problem } from '../../model/error.ts';
import { MAX_INSPECTED_BYTES } from '../../model/inspector.ts';
import { readBeginning } from '../body.ts';
import { disconnectSignal } from '../disconnect.ts';
import type { Call, Method, Operation } from '../route.ts';
import { pathParameter } from '../route.ts';
import { isInspectorId } from './inspectors.ts';

/** Bytes of a body. */
const BOUNDS = { most: MAX_INSPECTED_BYTES, discarded: 1_048_576 };

/** GET, POST and the like of /inspect/{address} */
export function inspectBy(method: Method): Operation<Call> {
  const name = `${method[0]}${method.slice(1).toLowerCase()}`;
  return {
    id: `inspect${name}`,
    open: true,
    group: 'Inspectors',
    summary: `The address of an inspector: keeps what ${method} sends, for its team to look at`,
    description:
      'Needs no key: whoever knows the address may send to it. Answers 204, or as the inspector has been told: with any status ' +
      'from 200 to 599, and as late.',
    parameters: [pathParameter('address', 'The id of an inspector')],
    answer: kept('It is kept, and the inspector has been told to answer 200'),
    otherAnswers: {
      204: { description: 'It is kept' },
      default: kept('It is kept, and the inspector has been told to answer so'),
    },
    refusals: {
      request_malformed: 'The body ended too early',
      inspector_not_found: 'No inspector found',
      overloaded: { description: 'It takes no more at this moment', headers: { 'retry-after': 'Seconds' } },
    },

    async handle(call) {
      const { services, request, reply } = call;
      const { address } = call.params;
      if (!isInspectorId(address)) throw new Problem('inspector_not_found');
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
      // Nothing that was sent is echoed, so that nobody can make a page of it on this origin.
      return reply
        .code(status)
        .headers({ 'cache-control': 'no-store', 'content-security-policy': "default-src 'none'; sandbox" })
        .type('text/plain; charset=utf-8')
        .send('Kept by an inspector\n');
    },
  };
}

function kept(description: string): object {
  return { description, content: { 'text/plain': { schema: { type: 'string' } } } };
}

function joined(headers: NodeJS.Dict<string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, values = []]) => [name, values.join(', ')]));
}
