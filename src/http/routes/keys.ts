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

const SELF = flagParameter('self', '`true` to allow revoking the key that makes this call');
const parameters = [pathParameter('keyId', 'Key ID')];

/** GET /v1/keys */
export const listKeys = listOperation({
  id: 'listKeys',
  group: 'Team',
  summary: 'List API keys',
  description:
    'Returns the keys of the team, oldest first, including revoked ones, but never the key values.',
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
  summary: 'Create an API key',
  description:
    'Only this response contains the key itself. Repeating the call with the same `idempotency-key` within 24 hours ' +
    'returns 409 with the ID of the key: rotate that key if its response was lost. Keys with the scope `operator` ' +
    'can be created only with `flowhook keys`.',
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        name: {
          type: 'string',
          maxLength: MAX_KEY_NAME,
          pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]*$`,
          description: 'Display name (default: empty)',
        },
        scopes: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { enum: TEAM_SCOPES },
          default: DEFAULT_SCOPES,
          description: 'Scopes of the key; `admin` includes the others',
        },
        expiresAt: {
          type: ['string', 'null'],
          format: 'date-time',
          description:
            'Time when the key stops working (ISO 8601). Default and maximum: the expiry of the key that ' +
            'makes this call. `null` if the key never expires',
        },
      },
    },
    { required: false },
  ),
  parameters: [
    {
      ...IDEMPOTENCY_KEY,
      description:
        'Unique key of the call. Repeating the call with the same key within 24 hours fails with 409',
    },
  ],
  answer: jsonResponse('Key created', mintedKeyResource),
  errors: {
    field_invalid: 'A field is not valid, the new key would expire later than the key that makes this call',
    quota_reached: 'Maximum number of keys reached',
    key_made_before: 'Key already created with this `idempotency-key`',
    idempotency_key_reused: '`idempotency-key` already used with a different body',
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
          `The key ${record.id} was already created with this \`idempotency-key\`, and is shown only once. If the ` +
          `response was lost, rotate it: POST /v1/keys/${record.id}/rotate`,
      });
    }
    return {
      message: 'Key created. The key is shown only once',
      apiKey: key,
      key: shownKey(record, store.now()),
    };
  },
};

/** POST /v1/keys/{keyId}/rotate */
export const rotateKey: Operation<KeyedCall> = {
  id: 'rotateKey',
  group: 'Team',
  summary: 'Rotate an API key',
  description:
    'Creates a new key with the same name, scopes and expiry. The old key is revoked immediately, or expires after ' +
    '`overlapSeconds`. A key may rotate itself.',
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
          description: 'Seconds for which the old key continues to work',
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('New key created', mintedKeyResource),
  errors: {
    field_invalid:
      '`overlapSeconds` is not valid, the key has the scope `operator`, it expires later than the key that ' +
      'makes this call',
    quota_reached: 'Maximum number of keys reached',
    key_not_found: 'No key found, or the key is revoked or expired',
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
      message:
        overlapMs === 0 ? 'Key rotated. The old key is revoked' : 'Key rotated. Both keys work for now',
      apiKey: made.key,
      key: shownKey(made.record, store.now()),
    };
  },
};

/** DELETE /v1/keys/{keyId} */
export const revokeKey: Operation<KeyedCall> = {
  id: 'revokeKey',
  group: 'Team',
  summary: 'Revoke an API key',
  description: 'Revokes the key immediately and permanently. Repeating the call is harmless.',
  parameters: [...parameters, SELF],
  answer: jsonResponse('Key revoked', messageWith('key', keyResource)),
  errors: {
    key_own:
      'The key is the one that makes this call and `self` is not `true`, or the key has the scope `operator`',
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
 * The key whose ID is in the path, if the caller's team owns it.
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
      `\`name\` must be a string of at most ${MAX_KEY_NAME} characters without control characters`,
    );
  }
  if (!Array.isArray(scopes) || scopes.length === 0 || new Set(scopes).size < scopes.length) {
    return invalid(`\`scopes\` must be an array of some of ${TEAM_SCOPES.join(', ')}, each at most once`);
  }
  if (scopes.includes('operator')) throw new Problem('key_of_operator');
  const given = new Set(scopes.map((scope) => oneOf('`scopes`', scope, TEAM_SCOPES)));
  const until = expiresAt === null ? null : timeFrom(expiresAt, '`expiresAt`');
  if (until !== null && until <= now) invalid('`expiresAt` must be in the future');
  return { name, scopes: TEAM_SCOPES.filter((scope) => given.has(scope)), expiresAt: until };
}
