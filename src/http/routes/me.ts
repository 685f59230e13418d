/** The team and the key of the caller, with the limits that apply to them. */
import { Problem } from '../../model/error.ts';
import { SCOPES } from '../../model/team.ts';
import { toIsoOrNull } from '../../std/clock.ts';
import { isoTimeOrNull } from '../../std/shape.ts';
import { MAX_BODY_BYTES } from '../body.ts';
import { PAGE_SIZE } from '../list-page.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

const integer = (description: string) => ({ type: 'integer', description });
const quota = (description: string) => ({
  type: ['integer', 'null'],
  description: `${description}; null: any number`,
});

/** GET /v1/me */
export const readMe: Operation<KeyedCall> = {
  id: 'readMe',
  group: 'Team',
  summary: 'Shows the team and the key that make this call, and the limits that hold for them',
  description: 'Takes every key that is good, whatever its scopes: a way to try one out.',
  answer: jsonResponse('The caller', {
    type: 'object',
    required: ['team', 'key', 'limits'],
    properties: {
      team: {
        type: 'object',
        required: ['id', 'slug'],
        properties: { id: { type: 'string' }, slug: { type: 'string' } },
      },
      key: {
        type: 'object',
        required: ['id', 'name', 'prefix', 'scopes', 'expiresAt'],
        properties: {
          id: { type: 'string' },
          name: { type: 'string' },
          prefix: { type: 'string', description: 'How the key begins' },
          scopes: { type: 'array', items: { enum: SCOPES } },
          expiresAt: { ...isoTimeOrNull, description: 'null: never' },
        },
      },
      limits: {
        type: 'object',
        required: [
          'defaultPageSize',
          'maxPageSize',
          'maxBodyBytes',
          'maxWebhooksPerWorkflow',
          'maxWorkflows',
          'maxWebhooks',
          'maxKeys',
          'maxRecords',
          'maxStoredBytes',
          'maxRunningJobs',
        ],
        properties: {
          defaultPageSize: integer('Items of a list without `limit`'),
          maxPageSize: integer('The highest `limit` of most lists'),
          maxBodyBytes: integer('Of a request body; a push may be of any length'),
          maxWebhooksPerWorkflow: integer('Active ones'),
          maxWorkflows: quota('Of the team'),
          maxWebhooks: quota('Of the team, over all its workflows'),
          maxKeys: quota('Of the team, neither revoked nor expired'),
          maxRecords: quota('Of the team, in the current versions of its workflows'),
          maxStoredBytes: quota(
            'Of the records in the current versions of its workflows, as JSON text in UTF-8',
          ),
          maxRunningJobs: quota('Of the team at once; others wait'),
        },
      },
    },
  }),

  async handle({ services: { store, webhooks, quotas }, caller: { teamId, keyId } }) {
    const team = await store.teams.get({ teamId });
    const own = await store.teams.quotas({ teamId });
    const key = await store.keys.get({ teamId, id: keyId });
    // Both were there a moment ago: the team may have been deleted since.
    if (team === undefined || key === undefined) throw new Problem('unauthorized');
    const { workflows, webhooks: hooks, keys, records, storedBytes, runningJobs } = { ...quotas, ...own };
    return {
      team: { id: team.id, slug: team.slug },
      key: {
        id: key.id,
        name: key.name,
        prefix: key.prefix,
        scopes: key.scopes,
        expiresAt: toIsoOrNull(key.expiresAt),
      },
      limits: {
        defaultPageSize: PAGE_SIZE.usual,
        maxPageSize: PAGE_SIZE.most,
        maxBodyBytes: MAX_BODY_BYTES,
        maxWebhooksPerWorkflow: webhooks.limit,
        maxWorkflows: workflows,
        maxWebhooks: hooks,
        maxKeys: keys,
        maxRecords: records,
        maxStoredBytes: storedBytes,
        maxRunningJobs: runningJobs,
      },
    };
  },
};
