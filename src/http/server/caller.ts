/** The caller of a request: key, address, the webhooks that led to the request, and the author for the audit log. */
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Author } from '../../model/audit.ts';
import { Problem } from '../../model/error.ts';
import { allows, type RequiredScope, scopeWords } from '../../model/team.ts';
import { peerAddress } from '../../net/host.ts';
import { HOPS_HEADER, MAX_HOPS } from '../../observe/trace-context.ts';
import { type Authenticator, type Caller, hashKey } from '../../teams/keys.ts';
import type { Request } from './exchange.ts';

/**
 * Finds the caller that a key belongs to. Returns a promise only if the key must be looked up.
 *
 * @param hash the hash of the key, see `keyOf`
 * @throws Problem `unauthorized` if the key is missing, empty, sent twice, unknown, expired or revoked;
 *   `scope_missing` if it does not have the scope
 */
export function authenticate(
  authenticator: Authenticator,
  hash: string | undefined,
  scope: RequiredScope,
): Caller | Promise<Caller> {
  if (hash === undefined) throw new Problem('unauthorized');
  const cached = authenticator.authenticateCached(hash);
  if (cached !== undefined) return requireScope(cached, scope);
  return authenticator.authenticate(hash).then((caller) => requireScope(caller, scope));
}

function requireScope(caller: Caller | undefined, scope: RequiredScope): Caller {
  if (caller === undefined) throw new Problem('unauthorized');
  if (!allows(caller.scopes, scope)) {
    throw new Problem('scope_missing', {
      sentence: `This API key does not have the scope ${scopeWords(scope)}, which this operation requires. Use a key that has it`,
    });
  }
  return caller;
}

/**
 * The hash of the key in `x-api-key`, if exactly one was sent. Node joins repeated headers with a comma, which a key may
 * contain.
 */
export function keyOf(request: IncomingMessage): string | undefined {
  const value = request.headers['x-api-key'];
  if (typeof value !== 'string') return undefined;
  if (value.includes(',') && request.headersDistinct['x-api-key']?.length !== 1) return undefined;
  const key = value.trim();
  return key === '' ? undefined : hashKey(key);
}

/**
 * The client's address as reported by trusted proxies, without the port that some of them append. If they report no
 * address, the peer's address; empty if the peer has disconnected.
 *
 * @param input.ip undefined if the connection was closed before the address was read
 */
export function clientAddress({ ip = '', socket }: { ip: string | undefined; socket: Socket }): string {
  const [, inBrackets, beforePort] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d+)?$/i.exec(ip) ?? [];
  const address = peerAddress(inBrackets ?? beforePort ?? ip);
  return isIP(address) === 0 ? (socket.remoteAddress ?? '') : address;
}

/** Operations that webhook deliveries may call. Jobs that they create inherit `flowhook-hops`. */
const COUNTED: ReadonlySet<string> = new Set(['queueWorkflowJob', 'pushWorkflowRecords']);

/**
 * How many webhooks led to a request, from the header `flowhook-hops` of a delivery; 0 for requests that are not
 * deliveries. This ends loops through the service's own webhooks. Deliveries may make no other changes, because hops
 * caused by them could not be counted. The other operations of the contract ignore the header.
 *
 * @throws Problem `webhook_loop`
 */
export function hopsTo(
  request: IncomingMessage,
  { method, operation }: { method: string; operation: { id: string; frozen?: true } },
): number {
  const header = request.headers[HOPS_HEADER];
  const isCounted = COUNTED.has(operation.id);
  if (header === undefined || method === 'GET' || (operation.frozen === true && !isCounted)) return 0;
  const hops = Number.parseInt(String(header), 10) || 1;
  if (!isCounted) {
    throw new Problem('webhook_loop', {
      sentence:
        'A webhook of Flowhook sent this request, and webhooks can only queue jobs and push records. Send the ' +
        'webhook to a program of your own that calls this operation',
    });
  }
  if (hops > MAX_HOPS) throw new Problem('webhook_loop');
  return Math.max(1, hops);
}

const MAKES_A_JOB = 'it creates a job, which has its own record of its origin';

/** Operations other than GETs that are not in the audit log, with the reason. */
export const UNAUDITED: Readonly<Record<string, string>> = {
  queueWorkflowJob: MAKES_A_JOB,
  rerunJob: MAKES_A_JOB,
  pushWorkflowRecords: MAKES_A_JOB,
};

export function authorOf(
  request: Request,
  { kind, id }: { kind: Author['kind']; id: Caller['keyId'] | null },
): Author {
  return { kind, id, name: null, address: clientAddress(request), requestId: request.id };
}
