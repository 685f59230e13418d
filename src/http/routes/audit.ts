/** GET /v1/audit: who changed what, when, and from where. */

import { Problem } from '../../model/error.ts';
import { allows } from '../../model/team.ts';
import { auditLineResource, shownAuditLine } from '../../resources/audit-line.ts';
import { idCursorFrom, makeIdCursor, nextLink } from '../cursor.ts';
import { isGeneratedId } from '../ids.ts';
import { PERIOD_PARAMETERS, pageLimit, pageParameters } from '../list-page.ts';
import { pageResponse } from '../openapi/content.ts';
import { queryPeriod, queryValue } from '../query.ts';
import type { KeyedCall, Operation } from '../route.ts';

/** Every team, and what belongs to the instance. */
const EVERY_TEAM = '*';

const named = (name: string, description: string) =>
  ({ name, in: 'query', description, schema: { type: 'string' } }) as const;

export const listAudit: Operation<KeyedCall> = {
  id: 'listAudit',
  group: 'Team',
  summary: 'Who changed what, when, and from where; newest first',
  description:
    'Every change over the API, in the dashboard, at a shell, by workflow files, and who signed in. Jobs that were ' +
    'queued are not here: each is a record of its own. With `action`, `actor` or `target` a page may hold less than ' +
    '`limit` lines, or none, and have a next one all the same.',
  parameters: [
    named(
      'team',
      'Of which team, by its slug, or `*` for all and the instance: for keys with the scope `operator`',
    ),
    named('action', 'Only this operation'),
    named('actor', 'Only what this key has done, by its id'),
    named('target', 'Only what was done to the one with this id'),
    ...PERIOD_PARAMETERS,
    ...pageParameters(),
  ],
  answer: pageResponse('lines', auditLineResource),
  refusals: { field_invalid: 'A parameter has a bad value', team_not_found: 'No team found' },

  async handle({ services: { store }, caller, query, reply }) {
    const limit = pageLimit(query);
    const before = idCursorFrom(query, (id) => isGeneratedId('aud', id));
    const wanted = { action: 'action', actorId: 'actor', targetId: 'target' } as const;
    const given = Object.entries(wanted).map(([field, name]) => [field, queryValue(query, name)] as const);
    const { lines, next } = await store.audit.list({
      ...(await teamOf({ store, caller }, queryValue(query, 'team'))),
      ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
      ...queryPeriod(query),
      ...(before !== undefined && { before }),
      limit,
    });
    if (next !== null) reply.header('link', nextLink('/v1/audit', query, makeIdCursor(next)));
    return { lines: lines.map(shownAuditLine) };
  },
};

/** The team whose lines are asked for; empty for all. */
async function teamOf(
  { store, caller }: { store: KeyedCall['services']['store']; caller: KeyedCall['caller'] },
  slug: string | undefined,
): Promise<{ teamId?: string }> {
  if (slug === undefined) return { teamId: caller.teamId };
  if (!allows(caller.scopes, 'operator')) {
    throw new Problem('scope_missing', {
      sentence:
        '`team` needs a key with the scope `operator`. Leave it out to read the audit of your own team',
    });
  }
  if (slug === EVERY_TEAM) return {};
  const team = await store.teams.bySlug({ slug });
  if (team === undefined) throw new Problem('team_not_found');
  return { teamId: team.id };
}
