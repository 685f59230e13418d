/** An API key as callers see it; never the key itself. */
import { type ApiKey, KEY_CONCERNS, keyConcern, SCOPES } from '../model/team.ts';
import { choice, integer, list, named, nullable, object, text, time } from '../std/shape.ts';
import { ENDED, IDS, QUEUED } from './examples.ts';

const whole = object({
  id: text(),
  name: text(),
  prefix: text('How the key begins, to recognise it by'),
  scopes: list(choice(SCOPES)),
  createdAt: time(),
  expiresAt: nullable(time('null: never')),
  revokedAt: nullable(time()),
  lastUsedAt: nullable(time('Written once a minute; null: never, since this is noted')),
  concern: nullable(
    choice(
      KEY_CONCERNS,
      '`unused`: not used for 90 days; `expires_soon`: within 14 days, or the last fifth of its life',
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

/** The answer to creating and rotating, the only one with the key itself. */
export const mintedKeyResource = object({
  message: text(),
  apiKey: text('The key itself, shown this once'),
  key: keyResource,
});

const quota = (description: string) => nullable(integer(`${description}; null: any number`));
const { id, name, prefix, scopes, expiresAt } = whole.fields;

/** The team and the key of a call, and the limits that hold for them. */
export const meResource = object({
  team: object({ id: text(), slug: text() }),
  key: object({ id, name, prefix, scopes, expiresAt }),
  limits: object({
    defaultPageSize: integer('Items of a list without `limit`'),
    maxPageSize: integer('The highest `limit` of most lists'),
    maxBodyBytes: integer('Of a request body; a push may be of any length'),
    maxWebhooksPerWorkflow: integer('Active ones'),
    maxWorkflows: quota('Of the team'),
    maxWebhooks: quota('Of the team, over all its workflows'),
    maxKeys: quota('Of the team, neither revoked nor expired'),
    maxRecords: quota('Of the team, in the current versions of its workflows'),
    maxStoredBytes: quota('Of the records in the current versions of its workflows, as JSON text in UTF-8'),
    maxRunningJobs: quota('Of the team at once; others wait'),
  }),
});

export function shownKey(apiKey: ApiKey, now: number) {
  return keyResource.of({ ...apiKey, concern: keyConcern(apiKey, now) });
}
