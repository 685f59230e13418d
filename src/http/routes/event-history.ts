/** Events, newest first, for people; and the deliveries of one event. */
import { Problem } from '../../model/error.ts';
import { EVENT_TYPES } from '../../model/event.ts';
import type { Job } from '../../model/job.ts';
import { deliveryResource, shownDelivery } from '../../resources/delivery.ts';
import { eventResource } from '../../resources/event.ts';
import { idCursorFrom, makeIdCursor, nextLink } from '../cursor.ts';
import { isGeneratedId } from '../ids.ts';
import { idCursor, onePage, PERIOD_PARAMETERS, pageLimit, pageParameters } from '../list-page.ts';
import { pageResponse } from '../openapi/content.ts';
import { namesSchema, queryNames, queryPeriod, queryValue } from '../query.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { WORKFLOW_FILTER, workflowFilter } from '../workflow-filter.ts';
import { eventOf } from './events.ts';

/** Events are of 20 kB at most: an answer stays under 5 MB. */
const EVENTS_PAGE = { usual: 100, most: 250 };

/** GET /v1/events/history */
export const listEventHistory: Operation<KeyedCall> = {
  id: 'listEventHistory',
  group: 'Events',
  summary: 'The events of a team, newest first, with the bodies that webhooks are sent',
  description:
    'Of events of a type or of a job a bounded number is looked through for a page: it may be short, or empty, and ' +
    'have a `Link` to the next one all the same.',
  parameters: [
    WORKFLOW_FILTER,
    { name: 'jobId', in: 'query', description: 'Only of this job', schema: { type: 'string' } },
    {
      name: 'type',
      in: 'query',
      description: `Only of these types, with commas between: ${EVENT_TYPES.join(', ')}`,
      schema: namesSchema(EVENT_TYPES),
    },
    ...PERIOD_PARAMETERS,
    ...pageParameters(EVENTS_PAGE),
  ],
  answer: pageResponse('events', eventResource),
  refusals: {
    field_invalid: 'A parameter has a bad value',
    workflow_not_found: 'No workflow found',
    job_not_found: 'No job found',
  },

  async handle(call) {
    const { services, caller, query, reply } = call;
    const { store } = services;
    const { teamId } = caller;
    const types = queryNames(query, 'type', EVENT_TYPES);
    const period = queryPeriod(query);
    const limit = pageLimit(query, EVENTS_PAGE);
    const before = idCursorFrom(query, (text) => isGeneratedId('evt', text));
    const { workflowId } = await workflowFilter(call);
    const jobId = queryValue(query, 'jobId');
    const job = isGeneratedId('job', jobId) ? await store.jobs.get({ teamId, id: jobId }) : undefined;
    const isTheirs = job !== undefined && (workflowId === undefined || workflowId === job.workflowId);
    if (jobId !== undefined && !isTheirs) throw new Problem('job_not_found');
    const { events, next } = await store.events.history({
      teamId,
      limit,
      ...period,
      ...(types && { types }),
      ...(before !== undefined && { before }),
      ...(workflowId !== undefined && { workflowId }),
      // The events of a job are among those of its workflow.
      ...(job && { jobId: job.id, workflowId: job.workflowId, ...within(job, period) }),
    });
    if (next !== null) reply.header('link', nextLink('/v1/events/history', query, makeIdCursor(next)));
    // The bodies exactly as stored: parsing would change numbers that a double cannot hold.
    reply.type('application/json; charset=utf-8');
    return reply.send(`{"events":[${events.map(({ body }) => body).join(',')}]}`);
  },
};

/** GET /v1/events/{eventId}/deliveries */
export const listEventDeliveries: Operation<KeyedCall> = {
  id: 'listEventDeliveries',
  group: 'Events',
  summary: 'Where an event went: its deliveries to all webhooks, newest first',
  parameters: [pathParameter('eventId', 'Event id'), ...pageParameters()],
  answer: pageResponse('deliveries', deliveryResource),
  refusals: { field_invalid: 'A parameter has a bad value', event_not_found: 'No event found' },

  async handle(call) {
    const { services, query } = call;
    const limit = pageLimit(query);
    const before = idCursorFrom(query, (text) => isGeneratedId('dlv', text));
    const { teamId, id, sequence } = await eventOf(call);
    const found = await services.store.deliveries.ofEvent({
      teamId,
      sequence,
      limit: limit + 1,
      ...(before !== undefined && { before }),
    });
    const path = `/v1/events/${id}/deliveries`;
    const page = onePage(call, found, { limit, path, cursorOf: idCursor });
    return { deliveries: page.map(shownDelivery) };
  },
};

/** The part of a period in which the job existed. */
function within(
  { createdAt, finishedAt }: Job,
  { since = 0, until = Number.POSITIVE_INFINITY }: { since?: number; until?: number },
): { since: number; until?: number } {
  const end = Math.min(until, finishedAt ?? Number.POSITIVE_INFINITY);
  return { since: Math.max(since, createdAt), ...(Number.isFinite(end) && { until: end }) };
}
