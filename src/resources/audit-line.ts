/** One line of the audit log, as the API returns it. */
import { ACTOR_KINDS, type AuditLine, TARGET_KINDS } from '../model/audit.ts';
import { anyObject, choice, named, nullable, object, text, time } from '../std/shape.ts';
import { ENDED, IDS } from './examples.ts';

export const auditLineResource = named(
  'AuditLine',
  object({
    id: text(),
    createdAt: time(),
    team: nullable(
      text('Slug of the team. `null` if the line belongs to the instance, such as the deletion of a team'),
    ),
    action: text('Operation, such as `webhooks.subscribe` or `records.erase`'),
    actor: object({
      kind: choice(
        ACTOR_KINDS,
        'Kind of author. `key`: an API key; `session`: a dashboard session; `command`: a shell command; ' +
          '`file`: a workflow file; `service`: the service itself at startup; `unknown`: a caller who was refused',
      ),
      id: nullable(
        text('ID of the API key; for a session, of the key that signed in. `null` if no key was used'),
      ),
      name: nullable(text('Name of the API key or of the operating system user. `null` if unknown')),
    }),
    target: nullable(
      object(
        { kind: choice(TARGET_KINDS), id: text() },
        'Changed resource. `null` if the change has no single target',
      ),
    ),
    address: nullable(text('IP address of the client. `null` if the change was not requested over HTTP')),
    requestId: nullable(
      text('`x-request-id` of the request, for finding it in the log. `null` if there was no request'),
    ),
    summary: text(),
    details: anyObject(
      'Erasure report: what was found and where; or URL and events of a webhook, `before` and `after` a change, without ' +
        'what may be secret in a URL. Empty for other operations',
    ),
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
