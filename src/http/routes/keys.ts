/** The API keys of a team: listing, creating, rotating and revoking them. */

import { found, Problem } from '../../model/error.ts';
import {
  type ApiKey,
  DEFAULT_SCOPES,
  livesLonger,
  MAX_KEY_NAME,
  type Scope,
  TEAM_SCOPES,
} from '../../model/team.ts';
import { keyResource, mintedKeyResource, shownKey } from '../../resources/key.ts';
import { toIsoOrNull } from '../../std/clock.ts';
import { mintKeyOnce, rotateKey as rotate } from '../../teams/keys.ts';
import { bodyFields } from '../input/body.ts';
import { byId, listOperation } from '../input/list-page.ts';
import { flagParameter } from '../input/query.ts';
import {
  IDEMPOTENCY_KEY,
  invalid,
  keyOfFields,
  keyOfPath,
  oneOf,
  timeFrom,
  wholeFrom,
} from '../input/values.ts';
import { jsonBody, jsonResponse, messageWith } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

const MAX_OVERLAP_S = 30 * 24 * 3_600;

const SELF = flagParameter('self', '`true` to revoke the key that makes this call');
const parameters = [pathParameter('keyId', 'Key id')];
/** GET /v1/keys */
export const listKeys = listOperation({
  id: 'listKeys',
  group: 'Team',
  summary: 'The API keys of the team, oldest first, revoked ones included; never the keys themselves',
  name: 'keys',
  resource: keyResource,
  order: byId('after', 'key'),
  rows: ({ services, caller: { teamId } }, range) => services.store.keys.list({ teamId, ...range }),
  show: (key, { services }) => shownKey(key, services.store.now()),
});

/** POST /v1/keys */
export const createKey: Operation<KeyedCall> = {
  id: 'createKey',
  group: 'Team',
  summary: 'Makes an API key of the team',
  description:
    'The key stands in this answer and never again: a repeated call with the same `idempotency-key` within 24 hours is ' +
    'answered 409, and names the key that was made. If its answer was lost, rotate that key. Keys with the scope `operator` are made with `flowhook keys` alone.',
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        name: {
          type: 'string',
          maxLength: MAX_KEY_NAME,
          pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]*$`,
          description: 'What to call it',
        },
        scopes: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { enum: TEAM_SCOPES },
          default: DEFAULT_SCOPES,
          description: '`admin` includes the others',
        },
        expiresAt: {
          type: ['string', 'null'],
          format: 'date-time',
          description:
            'From then on it is refused; null: never. It is not later than that of the key that makes this call, and by ' +
            'default the same',
        },
      },
    },
    { required: false },
  ),
  parameters: [
    {
      ...IDEMPOTENCY_KEY,
      description: 'Makes one key only: a call with the same one within 24 hours is refused',
    },
  ],
  answer: jsonResponse('The key', mintedKeyResource),
  errors: {
    field_invalid: 'A field is not valid, or the key would expire later than the one that makes this call',
    key_made_before: 'A call with this `idempotency-key` has made a key',
    idempotency_key_reused: 'A call with this `idempotency-key` has asked for another key',
  },

  async handle(call) {
    const {
      services: { store },
      caller: { teamId, keyId },
    } = call;
    const fields = await bodyFields(call);
    const own = await store.keys.get({ teamId, id: keyId });
    const wanted = keyFrom({ expiresAt: toIsoOrNull(own?.expiresAt ?? null), ...fields }, store.now());
    if (own !== undefined && livesLonger(wanted.expiresAt, own.expiresAt))
      throw new Problem('key_lives_longer');
    const idempotencyKey = keyOfFields(call, fields);
    const { key, record } = await mintKeyOnce(store, { teamId, ...wanted, idempotencyKey });
    if (key === undefined) {
      throw new Problem('key_made_before', {
        sentence:
          `This \`idempotency-key\` has made the key ${record.id} before, which was shown that once. If the answer was ` +
          `lost: POST /v1/keys/${record.id}/rotate`,
      });
    }
    return { message: 'Key made. It is shown this once', apiKey: key, key: shownKey(record, store.now()) };
  },
};

/** POST /v1/keys/{keyId}/rotate */
export const rotateKey: Operation<KeyedCall> = {
  id: 'rotateKey',
  group: 'Team',
  summary: 'Makes a new key with the name, scopes and expiry of this one, which ends',
  description:
    'Without `overlapSeconds` the old key is revoked at once. A key may rotate itself: the new one stands in the answer.',
  parameters,
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        overlapSeconds: {
          type: 'integer',
          minimum: 0,
          maximum: MAX_OVERLAP_S,
          default: 0,
          description: 'How long the old key goes on working',
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('The new key', mintedKeyResource),
  errors: {
    field_invalid:
      '`overlapSeconds` is not valid, the key has the scope `operator`, or it expires later than the one that makes this call',
    key_not_found: 'No key found, or it is revoked or expired',
  },

  async handle(call) {
    const {
      services: { store },
      caller: { teamId, keyId },
    } = call;
    const { overlapSeconds = 0 } = await bodyFields(call);
    const bounds = { least: 0, most: MAX_OVERLAP_S };
    const overlapMs = wholeFrom(overlapSeconds, '`overlapSeconds`', bounds) * 1_000;
    const { id, expiresAt } = await teamKey(call);
    const own = await store.keys.get({ teamId, id: keyId });
    if (own !== undefined && livesLonger(expiresAt, own.expiresAt)) throw new Problem('key_lives_longer');
    const made = found(await rotate(store, { teamId, id, overlapMs }), 'key_not_found');
    return {
      message: overlapMs === 0 ? 'Key rotated: the old one is revoked' : 'Key rotated: both work for now',
      apiKey: made.key,
      key: shownKey(made.record, store.now()),
    };
  },
};

/** DELETE /v1/keys/{keyId} */
export const revokeKey: Operation<KeyedCall> = {
  id: 'revokeKey',
  group: 'Team',
  summary: 'Revokes a key for good, at once',
  description: 'Asking twice is harmless.',
  parameters: [...parameters, SELF],
  answer: jsonResponse('The key is revoked', messageWith('key', keyResource)),
  errors: {
    key_own: 'It is the key that makes this call, without `self=true`; or it has the scope `operator`',
    key_not_found: 'No key found',
  },

  async handle(call) {
    const {
      services: { store },
      caller: { teamId, keyId },
    } = call;
    const meansSelf = SELF.read(call.query);
    const { id } = await teamKey(call);
    if (id === keyId && !meansSelf) throw new Problem('key_own');
    const key = found(await store.keys.revoke({ id, teamId }), 'key_not_found');
    return { message: 'Key revoked', key: shownKey(key, store.now()) };
  },
};

/**
 * The team's key that the path names.
 *
 * @throws Problem `key_not_found`; `key_of_operator`, which an `admin` may not change
 */
async function teamKey(call: KeyedCall): Promise<ApiKey> {
  const key = found(await call.services.store.keys.get(keyOfPath(call, 'key')), 'key_not_found');
  if (key.scopes.includes('operator')) throw new Problem('key_of_operator');
  return key;
}

function keyFrom(
  fields: Record<string, unknown>,
  now: number,
): { name: string; scopes: Scope[]; expiresAt: number | null } {
  const { name = '', scopes = DEFAULT_SCOPES, expiresAt = null } = fields;
  if (
    typeof name !== 'string' ||
    !name.isWellFormed() ||
    name.length > MAX_KEY_NAME ||
    /\p{Cc}/u.test(name)
  ) {
    return invalid(
      `\`name\` must be a string of at most ${MAX_KEY_NAME} characters without control characters, or be left out`,
    );
  }
  if (!Array.isArray(scopes) || scopes.length === 0 || new Set(scopes).size < scopes.length) {
    return invalid(
      `\`scopes\` must be an array of some of ${TEAM_SCOPES.join(', ')}, each named once, or be left out`,
    );
  }
  if (scopes.includes('operator')) throw new Problem('key_of_operator');
  const given = new Set(scopes.map((scope) => oneOf('`scopes`', scope, TEAM_SCOPES)));
  const until = expiresAt === null ? null : timeFrom(expiresAt, '`expiresAt`');
  if (until !== null && until <= now) invalid('`expiresAt` must lie in the future, or be left out');
  return { name, scopes: TEAM_SCOPES.filter((scope) => given.has(scope)), expiresAt: until };
}
