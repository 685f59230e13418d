/** An API key as callers see it; never the key itself. */
import { type ApiKey, KEY_CONCERNS, keyConcern, SCOPES } from '../model/team.ts';
import { toIso, toIsoOrNull } from '../std/clock.ts';
import { isoTime, isoTimeOrNull } from '../std/shape.ts';

export function shownKey(key: ApiKey, now: number) {
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    scopes: key.scopes,
    createdAt: toIso(key.createdAt),
    expiresAt: toIsoOrNull(key.expiresAt),
    revokedAt: toIsoOrNull(key.revokedAt),
    lastUsedAt: toIsoOrNull(key.lastUsedAt),
    concern: keyConcern(key, now),
  };
}

/** The same as JSON Schema. */
export const keySchema = {
  type: 'object',
  required: [
    'id',
    'name',
    'prefix',
    'scopes',
    'createdAt',
    'expiresAt',
    'revokedAt',
    'lastUsedAt',
    'concern',
  ],
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    prefix: { type: 'string', description: 'How the key begins, to recognise it by' },
    scopes: { type: 'array', items: { enum: SCOPES } },
    createdAt: isoTime,
    expiresAt: { ...isoTimeOrNull, description: 'null: never' },
    revokedAt: isoTimeOrNull,
    lastUsedAt: { ...isoTimeOrNull, description: 'Written once a minute; null: never, since this is noted' },
    concern: {
      enum: [...KEY_CONCERNS, null],
      description:
        '`unused`: not used for 90 days; `expires_soon`: within 14 days, or the last fifth of its life',
    },
  },
};
