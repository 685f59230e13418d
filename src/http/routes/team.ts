/** The team: whose key it is and what limits hold, how much was done, and who changed what. */

import { found, Problem } from '../../model/error.ts';
import { allows } from '../../model/team.ts';
import {
  PERIOD_MS,
  periodStart,
  USAGE_PERIODS,
  type UsageKind,
  type UsagePeriod,
} from '../../model/usage.ts';
import { auditLineResource, shownAuditLine } from '../../resources/audit-line.ts';
import { meResource } from '../../resources/key.ts';
import { type Span, shownUsage, usageResource } from '../../resources/usage.ts';
import { MAX_BODY_BYTES } from '../input/body.ts';
import {
  byId,
  listOperation,
  makeIdCursor,
  PAGE_SIZE,
  PERIOD,
  WORKFLOW_FILTER,
  workflowFilter,
} from '../input/list-page.ts';
import { choiceParameter, textParameter, timeParameter } from '../input/query.ts';
import { idFrom, invalid } from '../input/values.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

/** GET /v1/me */
export const readMe: Operation<KeyedCall<'quotas' | 'webhooks'>> = {
  id: 'readMe',
  group: 'Team',
  summary: 'Shows the team and the key that make this call, and the limits that hold for them',
  description: 'Takes every key that is good, whatever its scopes: a way to try one out.',
  answer: jsonResponse('The caller', meResource),

  async handle({ services: { store, webhooks, quotas }, caller: { teamId, keyId } }) {
    const team = await store.teams.get({ teamId });
    const own = await store.teams.quotas({ teamId });
    const key = await store.keys.get({ teamId, id: keyId });
    // Both were there a moment ago: the team may have been deleted since.
    if (team === undefined || key === undefined) throw new Problem('unauthorized');
    const { workflows, webhooks: hooks, keys, records, storedBytes, runningJobs } = { ...quotas, ...own };
    return meResource.of({
      team,
      key,
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
    });
  },
};

/** How many periods are returned without `from`, and at most. */
const PERIODS: Readonly<Record<UsagePeriod, { usual: number; most: number }>> = {
  hour: { usual: 24, most: 31 * 24 },
  day: { usual: 30, most: 366 },
};

const BY = choiceParameter('by', USAGE_PERIODS, '`hour` unless told');
const FROM = timeParameter(
  'from',
  `A time in the first hour or day; ${PERIODS.hour.usual} hours or ${PERIODS.day.usual} days before \`to\` unless told`,
);
const TO = timeParameter(
  'to',
  `A time behind the last; now unless told. At most ${PERIODS.hour.most} hours or ${PERIODS.day.most} days after \`from\``,
);
const WEBHOOK = textParameter('webhookId', 'Only of this webhook');

/** GET /v1/usage */
export const readUsage: Operation<KeyedCall> = {
  id: 'readUsage',
  group: 'Team',
  summary: 'How much the team has done: jobs, changed records and deliveries, by hours or days of UTC',
  description:
    'Of a workflow its jobs and records are told, of a webhook its deliveries, of the team all. Everything that had ' +
    'happened by `countedUntil` is counted, which is a minute or two ago. Hours are kept for three months, days for ' +
    'three years.',
  parameters: [BY, FROM, TO, WORKFLOW_FILTER, WEBHOOK],
  answer: jsonResponse('Every hour or day of the time, the oldest first', usageResource),
  errors: {
    field_invalid: 'A parameter has a bad value',
    workflow_not_found: 'No workflow or webhook found',
  },

  async handle(call) {
    const { store } = call.services;
    const span = spanFrom(call.query, store.now());
    const whose = await subjectFrom(call);
    const read = await store.usage.read({ teamId: call.caller.teamId, ...whose, ...span });
    return shownUsage(whose.kind, span, read);
  },
};

function spanFrom(query: string, now: number): Span {
  const period = BY.read(query) ?? 'hour';
  const { usual, most } = PERIODS[period];
  const length = PERIOD_MS[period];
  const to = Math.min(now, TO.read(query) ?? now);
  const until = Math.ceil(to / length) * length;
  const from = periodStart(period, FROM.read(query) ?? until - usual * length);
  if (from >= until) invalid('The query parameter `from` must be before `to`, and in the past');
  if ((until - from) / length > most) {
    invalid(`From \`from\` to \`to\` may be at most ${most} ${period}s: ask for less, or by day`);
  }
  return { period, from, until };
}

/** @throws Problem `workflow_not_found` or `webhook_not_found` */
async function subjectFrom(call: KeyedCall): Promise<{ kind: UsageKind; subject: string }> {
  const { services, caller, query } = call;
  const webhookId = WEBHOOK.read(query);
  if (webhookId !== undefined && WORKFLOW_FILTER.read(query) !== undefined) {
    invalid('Give `workflowId` or `webhookId`, not both: jobs are told of workflows, deliveries of webhooks');
  }
  if (webhookId !== undefined) {
    const key = { teamId: caller.teamId, id: idFrom('wh', webhookId) };
    found(await services.store.webhooks.get(key), 'webhook_not_found');
    return { kind: 'webhook', subject: webhookId };
  }
  const { workflowId } = await workflowFilter(call);
  return workflowId === undefined ? { kind: 'team', subject: '' } : { kind: 'workflow', subject: workflowId };
}

/** Every team, and what belongs to the instance. */
const EVERY_TEAM = '*';

const TEAM = textParameter(
  'team',
  'Of which team, by its slug, or `*` for all and the instance: for keys with the scope `operator`',
);

/** GET /v1/audit */
export const listAudit = listOperation({
  id: 'listAudit',
  group: 'Team',
  summary: 'Who changed what, when, and from where; newest first',
  description:
    'Every change over the API, in the dashboard, at a shell, by workflow files, and who signed in. Jobs that were ' +
    'queued are not here: each is a record of its own. With `action`, `actor` or `target` a page may hold less than ' +
    '`limit` lines, or none, and have a next one all the same.',
  name: 'lines',
  resource: auditLineResource,
  order: byId('before', 'aud'),
  parameters: [TEAM],
  filters: {
    action: textParameter('action', 'Only this operation'),
    actorId: textParameter('actor', 'Only what this key has done, by its id'),
    targetId: textParameter('target', 'Only what was done to the one with this id'),
    ...PERIOD,
  },
  errors: { team_not_found: 'No team found' },
  async rows({ services: { store }, caller, query }, { limit, ...range }) {
    const team = await teamOf({ store, caller }, TEAM.read(query));
    const { lines, next } = await store.audit.list({ ...team, ...range, limit: limit - 1 });
    return { rows: lines, next: next === null ? null : makeIdCursor(next) };
  },
  show: shownAuditLine,
});

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
  const team = found(await store.teams.bySlug({ slug }), 'team_not_found');
  return { teamId: team.id };
}
