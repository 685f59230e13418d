/** Names the author of a call for the audit: a call that changes something gets a store that records its changes. */
import type { FastifyRequest } from 'fastify';
import type { Author } from '../model/audit.ts';
import { authoredBy } from '../store/audited.ts';
import type { Caller } from '../teams/keys.ts';
import { clientAddress } from './client-address.ts';
import type { Route } from './route.ts';
import type { CallServices } from './services.ts';

const MAKES_A_JOB = 'it makes a job, which is a record of its own with its origin';

/** Operations that are not GETs and leave no line in the audit, with the reason. */
export const UNAUDITED: Readonly<Record<string, string>> = {
  queueWorkflowJob: MAKES_A_JOB,
  rerunJob: MAKES_A_JOB,
  pushWorkflowRecords: MAKES_A_JOB,
};

/** Whether calls of this route are audited. A GET changes nothing. */
export function isAudited({ method, operation }: Route): boolean {
  return method !== 'GET' && !(operation.id in UNAUDITED);
}

/** The same services, whose changes the audit records under this author. */
export function auditedAs(services: CallServices, author: Author): CallServices {
  const store = authoredBy(services.store, author);
  const { webhooks, erasure } = services;
  return { ...services, store, webhooks: { ...webhooks, store }, erasure: { ...erasure, store } };
}

export function authorOf(
  request: FastifyRequest,
  { kind, id }: { kind: Author['kind']; id: Caller['keyId'] | null },
): Author {
  return { kind, id, name: null, address: clientAddress(request), requestId: request.id };
}
