/** The public keys that receivers verify `v1a` signatures with; they need no API key. */

import { Problem } from '../../model/error.ts';
import { DEFAULT_TEAM } from '../../model/team.ts';
import { list, object, raw, text } from '../../std/shape.ts';
import { publicSigningKeys } from '../../webhooks/signing-keys.ts';
import { isGeneratedId } from '../ids.ts';
import { jsonResponse } from '../openapi/content.ts';
import { type Call, type Operation, pathParameter } from '../route.ts';

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
export const readDefaultSigningKeys: Operation<Call> = {
  id: 'readDefaultSigningKeys',
  group: 'Integrations',
  summary: 'Shows the public signing keys of the team `default`, which every instance begins with',
  answer,
  refusals,

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
