/** Who makes a request: the key, the client's address, the webhooks that led to it, and the author for the audit. */
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Author } from '../../model/audit.ts';
import { Problem } from '../../model/error.ts';
import { allows, type Scope } from '../../model/team.ts';
import { peerAddress } from '../../net/host.ts';
import { HOPS_HEADER, MAX_HOPS } from '../../observe/trace-context.ts';
import type { Authenticator, Caller } from '../../teams/keys.ts';
import type { Request } from './exchange.ts';

/**
 * The caller to whom a key belongs.
 *
 * @throws Problem `unauthorized` when the key is missing, empty, sent twice, unknown, expired or revoked;
 *   `scope_missing` when it does not have the scope
 */
export async function authenticate(
  authenticator: Authenticator,
  key: string | undefined,
  scope: Scope | 'any',
): Promise<Caller> {
  const caller = key === undefined ? undefined : await authenticator.authenticate(key);
  if (caller === undefined) throw new Problem('unauthorized');
  if (scope !== 'any' && !allows(caller.scopes, scope)) {
    throw new Problem('scope_missing', {
      sentence: `This API key does not have the scope \`${scope}\`, which this operation needs. Use one that has it`,
    });
  }
  return caller;
}

/** The key in `x-api-key`, if exactly one was sent. Node joins repeated headers with a comma, which a key may contain. */
export function keyOf(request: IncomingMessage): string | undefined {
  const value = request.headers['x-api-key'];
  if (typeof value !== 'string') return undefined;
  if (value.includes(',') && request.headersDistinct['x-api-key']?.length !== 1) return undefined;
  return value.trim() || undefined;
}

/**
 * The client's address as trusted proxies report it, without the port that some of them append and that differs for
 * every connection. Where they report no address, the address of the peer; empty when the peer is gone already.
 *
 * @param input.ip undefined when the connection was closed before anybody asked for it
 */
export function clientAddress({ ip = '', socket }: { ip: string | undefined; socket: Socket }): string {
  const [, inBrackets, beforePort] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d+)?$/i.exec(ip) ?? [];
  const address = peerAddress(inBrackets ?? beforePort ?? ip);
  return isIP(address) === 0 ? (socket.remoteAddress ?? '') : address;
}

/** What deliveries may call: their `flowhook-hops` is passed on to what these operations make. */
const COUNTED: ReadonlySet<string> = new Set(['queueWorkflowJob', 'pushWorkflowRecords']);

/**
 * How many webhooks led to a request; 0 for one that no delivery made. Every delivery says it in `flowhook-hops`, which
 * ends loops through the service's own webhooks. Other changes are not for webhooks: what they lead to could not be
 * counted. The rest of the contract knows no such header.
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
        'A webhook of Flowhook made this request, and webhooks can only queue jobs and push records. Let the ' +
        'receiver be a program of your own that calls this operation',
    });
  }
  if (hops > MAX_HOPS) throw new Problem('webhook_loop');
  return Math.max(1, hops);
}

const MAKES_A_JOB = 'it makes a job, which is a record of its own with its origin';

/** Operations that are not GETs and leave no line in the audit, with the reason. */
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
