/** Keys with which receivers verify signatures: the secrets of webhooks, and the public keys of teams. */
import { found, Problem } from '../../model/error.ts';
import { DEFAULT_TEAM } from '../../model/team.ts';
import { signingKeyResource } from '../../resources/webhook.ts';
import { toIso } from '../../std/clock.ts';
import { list, object, text } from '../../std/shape.ts';
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, rotateSecret } from '../../webhooks/change-webhook.ts';
import { webhookSecret } from '../../webhooks/sealed.ts';
import { publicSigningKeys } from '../../webhooks/signing-keys.ts';
import { bodyFields } from '../input/body.ts';
import { idFrom, invalid, keyOfPath } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type Call, type KeyedCall, type Operation, pathParameter } from '../route.ts';

const parameters = [pathParameter('webhookId', 'Webhook ID')];
const secret = text('`whsec_` followed by the secret in base64');

/** GET /v1/integrations/webhooks/{webhookId}/secret */
export const readWebhookSecret: Operation<KeyedCall<'webhooks'>> = {
  id: 'readWebhookSecret',
  group: 'Integrations',
  summary: 'Read the signing secret of a webhook',
  description: 'Returns the secret with which a receiver verifies `v1` signatures.',
  parameters,
  answer: jsonResponse('Signing secret', object({ secret })),
  errors: { webhook_not_found: 'No webhook found' },

  async handle(call) {
    return { secret: await webhookSecret(call.services.webhooks, keyOfPath(call, 'wh')) };
  },
};

/** POST /v1/integrations/webhooks/{webhookId}/rotate */
export const rotateWebhookSecret: Operation<KeyedCall<'webhooks'>> = {
  id: 'rotateWebhookSecret',
  group: 'Integrations',
  summary: 'Rotate the signing secret of a webhook',
  description:
    'Creates a new secret. Until `overlapUntil`, deliveries carry two `v1` signatures: with the new and with ' +
    'the old secret. If the overlap of an earlier rotation has not ended, the second signature is still made ' +
    'with the oldest secret.',
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
          description: 'Hours for which deliveries are also signed with the old secret',
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse(
    'New secret created',
    object({
      message: text(),
      secret,
      overlapUntil: text('Time until which deliveries are also signed with the old secret (ISO 8601)'),
    }),
  ),
  errors: { field_invalid: '`overlapHours` is not valid', webhook_not_found: 'No webhook found' },

  async handle(call) {
    const { overlapHours = DEFAULT_OVERLAP_HOURS } = await bodyFields(call);
    if (typeof overlapHours !== 'number' || !(overlapHours >= 0 && overlapHours <= MAX_OVERLAP_HOURS)) {
      invalid(`\`overlapHours\` must be a number from 0 to ${MAX_OVERLAP_HOURS}`);
    }
    const rotated = await rotateSecret(call.services.webhooks, { ...keyOfPath(call, 'wh'), overlapHours });
    return {
      message: 'New secret created. Configure the receiver with it',
      secret: rotated.secret,
      overlapUntil: toIso(rotated.overlapUntil),
    };
  },
};

const answer = jsonResponse('Public keys, oldest first', object({ keys: list(signingKeyResource) }));
const errors = { team_not_found: 'No team found' };

/** GET /.well-known/webhook-signing-keys/{teamId} */
export const readSigningKeys: Operation<Call<'webhooks'>> = {
  id: 'readSigningKeys',
  group: 'Integrations',
  summary: 'List the public signing keys of a team',
  description:
    'Returns the keys with which receivers verify `v1a` signatures (ed25519). The first call for a team creates its ' +
    'key; deliveries after that have a `v1a` signature.',
  parameters: [pathParameter('teamId', 'Team ID')],
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
  summary: 'List the public signing keys of the default team',
  description: 'Returns the keys of the team `default`, which every new instance has.',
  answer,
  errors,

  // The team is always `default`, because callers without a key must not learn whether there are other teams.
  async handle({ services }) {
    const team = await services.store.teams.bySlug({ slug: DEFAULT_TEAM });
    if (team === undefined) {
      throw new Problem('team_not_found', {
        sentence:
          'This instance has no team `default`. Name your team: /.well-known/webhook-signing-keys/{teamId}',
      });
    }
    return { keys: await publicSigningKeys(services.webhooks, { teamId: team.id }) };
  },
};
