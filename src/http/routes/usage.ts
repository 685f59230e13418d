/** Usage of a team by hour or day. */
import { Problem } from '../../model/error.ts';
import {
  PERIOD_MS,
  periodStart,
  USAGE_PERIODS,
  type UsageKind,
  type UsagePeriod,
} from '../../model/usage.ts';
import { type Span, shownUsage, usageResource } from '../../resources/usage.ts';
import { isGeneratedId } from '../ids.ts';
import { jsonResponse, requestTime } from '../openapi/content.ts';
import { queryName, queryTime, queryValue } from '../query.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { invalid } from '../values.ts';
import { WORKFLOW_FILTER, workflowFilter } from '../workflow-filter.ts';

/** How many periods are returned without `from`, and at most. */
const PERIODS: Readonly<Record<UsagePeriod, { usual: number; most: number }>> = {
  hour: { usual: 24, most: 31 * 24 },
  day: { usual: 30, most: 366 },
};

/** GET /v1/usage */
export const readUsage: Operation<KeyedCall> = {
  id: 'readUsage',
  group: 'Team',
  summary: 'How much the team has done: jobs, changed records and deliveries, by hours or days of UTC',
  description:
    'Of a workflow its jobs and records are told, of a webhook its deliveries, of the team all. Everything that had ' +
    'happened by `countedUntil` is counted, which is a minute or two ago. Hours are kept for three months, days for ' +
    'three years.',
  parameters: [
    { name: 'by', in: 'query', description: '`hour` unless told', schema: { enum: USAGE_PERIODS } },
    {
      name: 'from',
      in: 'query',
      description: `A time in the first hour or day; ${PERIODS.hour.usual} hours or ${PERIODS.day.usual} days before \`to\` unless told`,
      schema: requestTime,
    },
    {
      name: 'to',
      in: 'query',
      description: `A time behind the last; now unless told. At most ${PERIODS.hour.most} hours or ${PERIODS.day.most} days after \`from\``,
      schema: requestTime,
    },
    WORKFLOW_FILTER,
    { name: 'webhookId', in: 'query', description: 'Only of this webhook', schema: { type: 'string' } },
  ],
  answer: jsonResponse('Every hour or day of the time, the oldest first', usageResource),
  refusals: {
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
  const period = queryName(query, 'by', USAGE_PERIODS) ?? 'hour';
  const { usual, most } = PERIODS[period];
  const length = PERIOD_MS[period];
  const to = Math.min(now, queryTime(query, 'to') ?? now);
  const until = Math.ceil(to / length) * length;
  const from = periodStart(period, queryTime(query, 'from') ?? until - usual * length);
  if (from >= until) invalid('The query parameter `from` must be before `to`, and in the past');
  if ((until - from) / length > most) {
    invalid(`From \`from\` to \`to\` may be at most ${most} ${period}s: ask for less, or by day`);
  }
  return { period, from, until };
}

/** @throws Problem `workflow_not_found` or `webhook_not_found` */
async function subjectFrom(call: KeyedCall): Promise<{ kind: UsageKind; subject: string }> {
  const { services, caller, query } = call;
  const webhookId = queryValue(query, 'webhookId');
  if (webhookId !== undefined && queryValue(query, 'workflowId') !== undefined) {
    invalid('Give `workflowId` or `webhookId`, not both: jobs are told of workflows, deliveries of webhooks');
  }
  if (webhookId !== undefined) {
    const key = { teamId: caller.teamId, id: webhookId };
    const isKnown = isGeneratedId('wh', webhookId) && (await services.store.webhooks.get(key));
    if (!isKnown) throw new Problem('webhook_not_found');
    return { kind: 'webhook', subject: webhookId };
  }
  const { workflowId } = await workflowFilter(call);
  return workflowId === undefined ? { kind: 'team', subject: '' } : { kind: 'workflow', subject: workflowId };
}
