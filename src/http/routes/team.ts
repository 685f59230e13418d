/** The team: the caller and its limits, usage, and the audit log. */

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
  summary: 'Read the current team and key',
  description:
    'Returns the team and the key of this call, and their limits. Requires no scope, so you can test any key ' +
    'with this call.',
  answer: jsonResponse('Team, key and limits', meResource),

  async handle({ services: { store, webhooks, quotas }, caller: { teamId, key } }) {
    const team = await store.teams.withQuotas({ teamId });
    // The team existed when the request was authenticated, but may have been deleted since.
    if (team === undefined || key === null) throw new Problem('unauthorized');
    const all = { ...quotas, ...team.quotas };
    const { workflows, webhooks: hooks, keys, records, storedBytes, runningJobs } = all;
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

/** How many periods are returned by default, and at most. */
const PERIODS: Readonly<Record<UsagePeriod, { usual: number; most: number }>> = {
  hour: { usual: 24, most: 31 * 24 },
  day: { usual: 30, most: 366 },
};

const BY = choiceParameter('by', USAGE_PERIODS, 'Length of a bucket (default: `hour`)');
const FROM = timeParameter(
  'from',
  `Time in the first bucket (default: ${PERIODS.hour.usual} hours or ${PERIODS.day.usual} days before \`to\`)`,
);
const TO = timeParameter(
  'to',
  `End of the period, rounded up to a whole bucket (default and maximum: now), at most ${PERIODS.hour.most} hours or ${PERIODS.day.most} days after \`from\``,
);
const WEBHOOK = textParameter('webhookId', 'Filter by webhook ID');

/** GET /v1/usage */
export const readUsage: Operation<KeyedCall> = {
  id: 'readUsage',
  group: 'Team',
  summary: 'Read usage',
  description:
    'Returns the number of jobs, changed records and deliveries of the team by hour or day (UTC). With ' +
    '`workflowId`, counts only the jobs and records of that workflow; with `webhookId`, only the deliveries ' +
    'of that webhook. Counts are complete up to `countedUntil`, one or two minutes ago. Hourly counts are ' +
    'stored for three months, daily counts for three years.',
  parameters: [BY, FROM, TO, WORKFLOW_FILTER, WEBHOOK],
  answer: jsonResponse('Usage by hour or day, oldest first', usageResource),
  errors: {
    field_invalid: 'A parameter has an invalid value',
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
    invalid(
      `The period from \`from\` to \`to\` must be at most ${most} ${period}s: shorten it, or use \`by=day\``,
    );
  }
  return { period, from, until };
}

/** @throws Problem `workflow_not_found` or `webhook_not_found` */
async function subjectFrom(call: KeyedCall): Promise<{ kind: UsageKind; subject: string }> {
  const { services, caller, query } = call;
  const webhookId = WEBHOOK.read(query);
  if (webhookId !== undefined && WORKFLOW_FILTER.read(query) !== undefined) {
    invalid('Send `workflowId` or `webhookId`, not both: workflows have jobs, webhooks have deliveries');
  }
  if (webhookId !== undefined) {
    const key = { teamId: caller.teamId, id: idFrom('wh', webhookId) };
    found(await services.store.webhooks.get(key), 'webhook_not_found');
    return { kind: 'webhook', subject: webhookId };
  }
  const { workflowId } = await workflowFilter(call);
  return workflowId === undefined ? { kind: 'team', subject: '' } : { kind: 'workflow', subject: workflowId };
}

/** All teams and the instance. */
const EVERY_TEAM = '*';

const TEAM = textParameter(
  'team',
  'Slug of a team, or `*` for all teams and the instance (default: your team). Requires the scope `operator`',
);

/** GET /v1/audit */
export const listAudit = listOperation({
  id: 'listAuditLines',
  group: 'Team',
  summary: 'List the audit log',
  description:
    'Returns sign-ins, and changes made over the API, in the dashboard, in a shell and by workflow files, ' +
    'newest first. Queued jobs and pushes are not included: list the jobs instead. With `action`, `actor` or ' +
    '`target`, a page may be short or empty although `Link` has a next page.',
  name: 'lines',
  resource: auditLineResource,
  order: byId('before', 'aud'),
  parameters: [TEAM],
  filters: {
    action: textParameter('action', 'Filter by operation'),
    actorId: textParameter('actor', 'Filter by the ID of the key that made the change'),
    targetId: textParameter('target', 'Filter by the ID of the changed resource'),
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

/** The team whose lines are requested; empty for all. */
async function teamOf(
  { store, caller }: { store: KeyedCall['services']['store']; caller: KeyedCall['caller'] },
  slug: string | undefined,
): Promise<{ teamId?: string }> {
  if (slug === undefined) return { teamId: caller.teamId };
  if (!allows(caller.scopes, 'operator')) {
    throw new Problem('scope_missing', {
      sentence:
        '`team` requires a key with the scope `operator`. Omit it to read the audit log of your own team',
    });
  }
  if (slug === EVERY_TEAM) return {};
  const team = found(await store.teams.bySlug({ slug }), 'team_not_found');
  return { teamId: team.id };
}
