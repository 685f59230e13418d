/** What receivers verify signatures with: the secrets of webhooks, and the public keys of teams. */
import { found, Problem } from '../../model/error.ts';
import { DEFAULT_TEAM } from '../../model/team.ts';
import { toIso } from '../../std/clock.ts';
import { list, object, raw, text } from '../../std/shape.ts';
import { webhookSecret } from '../../webhooks/sealed.ts';
import { publicSigningKeys } from '../../webhooks/signing-keys.ts';
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, rotateSecret } from '../../webhooks/subscribe.ts';
import { bodyFields } from '../input/body.ts';
import { idFrom, invalid, keyOfPath } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type Call, type KeyedCall, type Operation, pathParameter } from '../route.ts';

const parameters = [pathParameter('webhookId', 'Webhook id')];
const secret = text('whsec_ and base64');

/** GET /v1/integrations/webhooks/{webhookId}/secret */
export const readWebhookSecret: Operation<KeyedCall<'webhooks'>> = {
  id: 'readWebhookSecret',
  group: 'Integrations',
  summary: 'Shows the secret that a receiver verifies the `v1` signature with',
  parameters,
  answer: jsonResponse('The secret', object({ secret })),
  errors: { webhook_not_found: 'No webhook found' },

  async handle(call) {
    return { secret: await webhookSecret(call.services.webhooks, keyOfPath(call, 'wh')) };
  },
};

/** POST /v1/integrations/webhooks/{webhookId}/rotate */
export const rotateWebhookSecret: Operation<KeyedCall<'webhooks'>> = {
  id: 'rotateWebhookSecret',
  group: 'Integrations',
  summary: 'Gives a webhook a new secret; the previous one stays valid until `overlapUntil`',
  description: 'Until `overlapUntil` every delivery carries a `v1` signature of each, the new one first.',
  parameters,
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        overlapHours: {
          type: 'number',
          minimum: 0,
          maximum: MAX_OVERLAP_HOURS,
          default: DEFAULT_OVERLAP_HOURS,
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('The new secret', object({ message: text(), secret, overlapUntil: text() })),
  errors: { field_invalid: '`overlapHours` is not valid', webhook_not_found: 'No webhook found' },

  async handle(call) {
    const { overlapHours = DEFAULT_OVERLAP_HOURS } = await bodyFields(call);
    if (typeof overlapHours !== 'number' || !(overlapHours >= 0 && overlapHours <= MAX_OVERLAP_HOURS)) {
      invalid(`\`overlapHours\` must be a number from 0 to ${MAX_OVERLAP_HOURS}, or be left out`);
    }
    const rotated = await rotateSecret(call.services.webhooks, { ...keyOfPath(call, 'wh'), overlapHours });
    return {
      message: 'New secret: give it to the receiver',
      secret: rotated.secret,
      overlapUntil: toIso(rotated.overlapUntil),
    };
  },
};

const answer = jsonResponse(
  'The keys, oldest first',
  object({
    keys: list(
      object({
        id: text(),
        type: raw<'ed25519'>({ const: 'ed25519' }),
        key: text('whpk_ and the 32 bytes in base64'),
        createdAt: text(),
      }),
    ),
  }),
);
const errors = { team_not_found: 'No team found' };

/** GET /.well-known/webhook-signing-keys/{teamId} */
export const readSigningKeys: Operation<Call<'webhooks'>> = {
  id: 'readSigningKeys',
  group: 'Integrations',
  summary: 'Shows the public signing keys of a team',
  parameters: [pathParameter('teamId', 'Team id')],
  answer,
  errors,

  async handle({ services, params }) {
    const teamId = idFrom('team', params.teamId);
    found(await services.store.teams.get({ teamId }), 'team_not_found');
    return { keys: await publicSigningKeys(services.webhooks, { teamId }) };
  },
};

/** GET /.well-known/webhook-signing-keys */
export const readDefaultSigningKeys: Operation<Call<'webhooks'>> = {
  id: 'readDefaultSigningKeys',
  group: 'Integrations',
  summary: 'Shows the public signing keys of the team `default`, which every instance begins with',
  answer,
  errors,

  // Always of this team, also where it is the only one: whoever asks without a key must not learn whether there are others.
  async handle({ services }) {
    const team = await services.store.teams.bySlug({ slug: DEFAULT_TEAM });
    if (team === undefined) {
      throw new Problem('team_not_found', {
        sentence:
          'This instance has no team `default`. Name yours: /.well-known/webhook-signing-keys/{teamId}',
      });
    }
    return { keys: await publicSigningKeys(services.webhooks, { teamId: team.id }) };
  },
};
