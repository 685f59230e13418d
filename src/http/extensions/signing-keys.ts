/** The public keys that receivers verify `v1a` signatures with; they need no API key. */
import { Problem } from '../../model/error.ts';
import { publicSigningKeys } from '../../webhooks/signing-keys.ts';
import { isGeneratedId } from '../ids.ts';
import { jsonResponse } from '../openapi/content.ts';
import { type Call, type Operation, pathParameter } from '../route.ts';

const answer = jsonResponse('The keys, oldest first', {
  type: 'object',
  required: ['keys'],
  properties: {
    keys: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          type: { const: 'ed25519' },
          key: { type: 'string', description: 'whpk_ and the 32 bytes in base64' },
          createdAt: { type: 'string' },
        },
      },
    },
  },
});
const refusals = { team_not_found: 'No team found' };

/** GET /.well-known/webhook-signing-keys/{teamId} */
export const readSigningKeys: Operation<Call> = {
  id: 'readSigningKeys',
  group: 'Integrations',
  summary: 'Shows the public signing keys of a team',
  parameters: [pathParameter('teamId', 'Team id')],
  answer,
  refusals,

  async handle({ services, params: { teamId } }) {
    const team = isGeneratedId('team', teamId) ? await services.store.teams.get({ teamId }) : undefined;
    if (team === undefined) throw new Problem('team_not_found');
    return { keys: await publicSigningKeys(services.webhooks, { teamId: team.id }) };
  },
};

/** GET /.well-known/webhook-signing-keys */
export const readSoleTeamSigningKeys: Operation<Call> = {
  id: 'readSoleTeamSigningKeys',
  group: 'Integrations',
  summary: 'Shows the public signing keys of the only team, where an instance has one',
  answer,
  refusals,

  async handle({ services }) {
    const [team, ...others] = await services.store.teams.list();
    if (team === undefined || others.length > 0) {
      throw new Problem('team_not_found', {
        sentence:
          'This instance does not have exactly one team. Name yours: /.well-known/webhook-signing-keys/{teamId}',
      });
    }
    return { keys: await publicSigningKeys(services.webhooks, { teamId: team.id }) };
  },
};
