/** A line of the audit as callers see it. */
import { ACTOR_KINDS, type AuditLine, TARGET_KINDS } from '../model/audit.ts';
import { anyObject, choice, named, nullable, object, text, time } from '../std/shape.ts';
import { ENDED, IDS } from './examples.ts';

export const auditLineResource = named(
  'AuditLine',
  object({
    id: text(),
    createdAt: time(),
    team: nullable(text('Its slug; null: the instance, as for a team that was deleted')),
    action: text('The operation, such as `webhooks.subscribe` or `records.erase`'),
    actor: object({
      kind: choice(
        ACTOR_KINDS,
        '`key`: over the API; `session`: in the dashboard; `command`: at a shell; `file`: by a workflow file; ' +
          '`service`: by a start; `unknown`: who was refused',
      ),
      id: nullable(text('Of the key')),
      name: nullable(text("Of the key, or of the system's user")),
    }),
    target: nullable(object({ kind: choice(TARGET_KINDS), id: text() })),
    address: nullable(text('Where the request came from')),
    requestId: nullable(text('Its `x-request-id`, which the log tells more about')),
    summary: text(),
    details: anyObject('Of erasures: what was found where'),
  }),
  {
    id: IDS.auditLine,
    createdAt: ENDED,
    team: 'default',
    action: 'webhooks.subscribe',
    actor: { kind: 'key', id: IDS.key, name: 'reports' },
    target: { kind: 'webhook', id: IDS.webhook },
    address: '192.0.2.7',
    requestId: '6f1c1b7e-6a53-4a3c-9c2e-0e6c6a0f7a11',
    summary: 'to 2 events of workflow people',
    details: {},
  },
);

export function shownAuditLine({ author, details, ...line }: AuditLine) {
  const { address, requestId } = author;
  return auditLineResource.of({
    ...line,
    actor: author,
    address,
    requestId,
    details: details as Record<string, unknown>,
  });
}
