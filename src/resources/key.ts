/** An API key, as the API returns it: never with the key value. */
import { type ApiKey, KEY_CONCERNS, keyConcern, SCOPES } from '../model/team.ts';
import { choice, integer, list, named, nullable, object, text, time } from '../std/shape.ts';
import { ENDED, IDS, QUEUED } from './examples.ts';

const whole = object({
  id: text(),
  name: text(),
  prefix: text('First characters of the key, to recognize it by'),
  scopes: list(choice(SCOPES)),
  createdAt: time(),
  expiresAt: nullable(time('Time when the key stops working. `null` if it never expires')),
  revokedAt: nullable(time('Time when the key was revoked. `null` if it was not')),
  lastUsedAt: nullable(
    time('Time of the last use, accurate to one minute. `null` if the key was never used'),
  ),
  concern: nullable(
    choice(
      KEY_CONCERNS,
      '`unused`: not used for 90 days; `expires_soon`: expires within 14 days, or within the last fifth of its lifetime ' +
        'if that is shorter. `null` if neither, or if the key is revoked or expired',
    ),
  ),
});

export const keyResource = named('Key', whole, {
  id: IDS.key,
  name: 'reports',
  prefix: 'fh_4Yx9',
  scopes: ['read', 'queue', 'webhooks'],
  createdAt: QUEUED,
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: ENDED,
  concern: null,
});

/** The response to creating or rotating a key: the only one that contains the key itself. */
export const mintedKeyResource = object({
  message: text(),
  apiKey: text('API key to send in `x-api-key`. Shown only in this response'),
  key: keyResource,
});

const quota = (description: string) => nullable(integer(`${description}. \`null\` if unlimited`));
const { id, name, prefix, scopes, expiresAt } = whole.fields;

/** The team and the key of a call, and their limits. */
export const meResource = object({
  team: object({ id: text(), slug: text() }),
  key: object({ id, name, prefix, scopes, expiresAt }),
  limits: object({
    defaultPageSize: integer('Items per page if `limit` is not set'),
    maxPageSize: integer('Highest `limit` of most lists'),
    maxBodyBytes: integer('Maximum size of a JSON request body, in bytes. A push may be of any length'),
    maxWebhooksPerWorkflow: integer('Maximum number of active webhooks per workflow'),
    maxWorkflows: quota('Maximum number of workflows in the team'),
    maxWebhooks: quota('Maximum number of webhooks in the team, across all workflows'),
    maxKeys: quota('Maximum number of keys that are neither revoked nor expired'),
    maxRecords: quota('Maximum number of records in the current versions of all workflows'),
    maxStoredBytes: quota(
      'Maximum size of the records in the current versions of all workflows, in bytes of JSON text',
    ),
    maxRunningJobs: quota('Maximum number of jobs that run at the same time; further jobs wait'),
  }),
});

export function shownKey(apiKey: ApiKey, now: number) {
  return keyResource.of({ ...apiKey, concern: keyConcern(apiKey, now) });
}
