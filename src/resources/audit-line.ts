/** A line of the audit as callers see it, over HTTP and at the shell. */
import { ACTOR_KINDS, type AuditLine, TARGET_KINDS } from '../model/audit.ts';
import { toIso } from '../std/clock.ts';
import { isoTime } from '../std/shape.ts';

export function shownAuditLine(line: AuditLine) {
  const { id, createdAt, team, action, author, target, summary, details } = line;
  return {
    id,
    createdAt: toIso(createdAt),
    team,
    action,
    actor: { kind: author.kind, id: author.id, name: author.name },
    target,
    address: author.address,
    requestId: author.requestId,
    summary,
    details: details as Record<string, unknown>,
  };
}

const text = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };

/** The same as JSON Schema. */
export const auditLineSchema = {
  type: 'object',
  required: [
    'id',
    'createdAt',
    'team',
    'action',
    'actor',
    'target',
    'address',
    'requestId',
    'summary',
    'details',
  ],
  properties: {
    id: text,
    createdAt: isoTime,
    team: { ...textOrNull, description: 'Its slug; null: the instance, as for a team that was deleted' },
    action: { ...text, description: 'The operation, such as `webhooks.subscribe` or `records.erase`' },
    actor: {
      type: 'object',
      required: ['kind', 'id', 'name'],
      properties: {
        kind: {
          enum: ACTOR_KINDS,
          description:
            '`key`: over the API; `session`: in the dashboard; `command`: at a shell; `file`: by a workflow file; ' +
            '`service`: by a start; `unknown`: who was refused',
        },
        id: { ...textOrNull, description: 'Of the key' },
        name: { ...textOrNull, description: "Of the key, or of the system's user" },
      },
    },
    target: {
      type: ['object', 'null'],
      required: ['kind', 'id'],
      properties: { kind: { enum: TARGET_KINDS }, id: text },
    },
    address: { ...textOrNull, description: 'Where the request came from' },
    requestId: { ...textOrNull, description: 'Its `x-request-id`, which the log tells more about' },
    summary: text,
    details: { type: 'object', description: 'Of erasures: what was found where' },
  },
};
