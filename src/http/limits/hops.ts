/**
 * Ends loops through the service's own webhooks. Every delivery says how many webhooks led to it (`flowhook-hops`). A
 * request that carries this queues or pushes as one step further, and is refused when there were too many. Other
 * changes are not for webhooks: what they lead to could not be counted. The rest of the contract knows no such header.
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../model/error.ts';
import { HOPS_HEADER, MAX_HOPS } from '../../observe/trace-context.ts';
import type { Route } from '../route.ts';

const COUNTED: ReadonlySet<string> = new Set(['queueWorkflowJob', 'pushWorkflowRecords']);

/**
 * How many webhooks led to a request; 0 for one that no delivery made.
 *
 * @throws Problem `webhook_loop`
 */
export function hopsTo(request: IncomingMessage, { method, operation }: Route): number {
  const header = request.headers[HOPS_HEADER];
  const isCounted = COUNTED.has(operation.id);
  if (header === undefined || method === 'GET' || (operation.frozen === true && !isCounted)) return 0;
  const hops = Number.parseInt(String(header), 10) || 1;
  if (!isCounted) {
    throw new Problem('webhook_loop', {
      sentence:
        'A webhook of Flowhook made this request, and webhooks can only queue jobs and push records. Let the ' +
        'receiver be a program of your own that calls this operation',
    });
  }
  if (hops > MAX_HOPS) throw new Problem('webhook_loop');
  return Math.max(1, hops);
}
