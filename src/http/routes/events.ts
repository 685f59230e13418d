/** Events: in order for receivers that catch up, newest first for people, their types, and news for programs. */

import { found, Problem } from '../../model/error.ts';
import { aliasesOf, canonicalEvent, EVENT_TYPES, eventNameMistake } from '../../model/event.ts';
import { EVENT_CATALOG } from '../../model/event-catalog.ts';
import type { Job } from '../../model/job.ts';
import { deliveryResource, shownDelivery } from '../../resources/delivery.ts';
import { eventResource } from '../../resources/event.ts';
import { IDS } from '../../resources/examples.ts';
import { anyObject, choice, integer, list, object, raw, text } from '../../std/shape.ts';
import type { StoredEvent } from '../../store/operations/events.ts';
import { sendWithETag } from '../caching.ts';
import {
  byId,
  listOperation,
  nextLink,
  PERIOD,
  pageParameters,
  WORKFLOW_FILTER,
  workflowFilter,
} from '../input/list-page.ts';
import { choicesParameter, numberParameter, queryValue, readGiven, textParameter } from '../input/query.ts';
import { idFrom, invalid, keyOfPath } from '../input/values.ts';
import { jsonResponse, pageResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, type Parameter, pathParameter } from '../route.ts';
import { disconnectSignal } from '../server/exchange.ts';
import { EventStream, MAX_STREAMS_OF_TEAM } from '../streams/streams.ts';
import { NEWS_KINDS } from '../streams/team-news.ts';

const DEFAULT_LIMIT = 100;
/** Events are of 20 kB at most: an answer stays under 5 MB. */
const MAX_LIMIT = 250;
const AFTER: Parameter = {
  name: 'after',
  in: 'query',
  description: 'The `sequence` of the last event that is known; 0: from the beginning; `now`: only new ones',
  // A string: generated clients of some languages cannot express a parameter of two types.
  schema: { type: 'string', pattern: '^(now|\\d{1,15})$', default: '0', minLength: 1 },
};
const LIMIT = numberParameter('limit', `At most so many, ${DEFAULT_LIMIT} by default`, {
  least: 1,
  most: MAX_LIMIT,
});
const WAIT = numberParameter('wait', 'Seconds to wait for one', { most: 25 });

/** GET /v1/events */
export const listEvents: Operation<KeyedCall<'eventWaits' | 'longCalls'>> = {
  id: 'listEvents',
  weight: 'long',
  group: 'Events',
  summary: 'The events of a team after a sequence, in order, with the bodies that webhooks are sent',
  description:
    'A receiver that was away catches up: `next` is the `after` of the next call. With `wait` the answer is held ' +
    'until there is an event, or the time is over.',
  parameters: [AFTER, LIMIT, WAIT],
  answer: jsonResponse(
    'The events',
    object({ events: list(eventResource), next: integer('The `after` of the next call') }),
    { Link: 'With `rel="next"`, when `limit` was reached' },
  ),
  errors: {
    field_invalid: 'A parameter has a bad value',
    overloaded: { description: 'Too many calls wait', headers: { 'retry-after': 'Seconds' } },
  },

  async handle(call) {
    const { services, caller, query, reply } = call;
    const { teamId } = caller;
    const { events } = services.store;
    const from = afterFrom(query);
    const limit = LIMIT.read(query) ?? DEFAULT_LIMIT;
    const waitMs = (WAIT.read(query) ?? 0) * 1_000;
    const after = from ?? (await events.newestSequence({ teamId }));
    let found = await events.list({ teamId, afterSequence: after, limit });
    if (found.length === 0 && waitMs > 0) {
      const long = services.longCalls.follow(caller);
      try {
        const signal = AbortSignal.any([disconnectSignal(call), long.signal]);
        await services.eventWaits.until({ teamId, after, ms: waitMs, signal });
        found = await events.list({ teamId, afterSequence: after, limit });
        await long.confirm();
      } finally {
        long.end();
      }
    }
    const next = found.at(-1)?.sequence ?? after;
    if (found.length === limit) {
      reply.header('link', nextLink('/v1/events', query, String(next), 'after'));
    }
    // The bodies exactly as stored: parsing would change numbers that a double cannot hold.
    const bodies = found.map(({ body }) => body).join(',');
    reply.type('application/json; charset=utf-8');
    return reply.send(`{"events":[${bodies}],"next":${next}}`);
  },
};

/** GET /v1/events/{eventId} */
export const readEvent: Operation<KeyedCall> = {
  id: 'readEvent',
  group: 'Events',
  etag: true,
  summary: 'Shows one event, exactly as webhooks are sent it',
  parameters: [pathParameter('eventId', 'Event id')],
  answer: jsonResponse('The event', eventResource),
  errors: { event_not_found: 'No event found' },

  async handle(call) {
    return sendWithETag(call, (await eventOf(call)).body);
  },
};

/** The event that the path names. @throws Problem `event_not_found` */
export async function eventOf(call: KeyedCall): Promise<StoredEvent> {
  return found(await call.services.store.events.get(keyOfPath(call, 'evt')), 'event_not_found');
}

/** Undefined: only new ones. */
function afterFrom(query: string): number | undefined {
  const text = queryValue(query, 'after') ?? '0';
  if (/^(now|\d{1,15})$/.test(text)) return text === 'now' ? undefined : Number(text);
  return invalid('The query parameter `after` must be the `sequence` of an event, or `now`, or be left out');
}

/** Events are of 20 kB at most: an answer stays under 5 MB. */
const historyOrder = byId('before', 'evt');
const historyPage = pageParameters(historyOrder.of({ id: IDS.event }), { usual: 100, most: 250 });
const historyFilters = {
  types: choicesParameter('type', EVENT_TYPES, 'Only of these types'),
  ...PERIOD,
};
const JOB = textParameter('jobId', 'Only of this job');

/** GET /v1/events/history */
export const listEventHistory: Operation<KeyedCall> = {
  id: 'listEventHistory',
  group: 'Events',
  summary: 'The events of a team, newest first, with the bodies that webhooks are sent',
  description:
    'Of events of a type or of a job a bounded number is looked through for a page: it may be short, or empty, and ' +
    'have a `Link` to the next one all the same.',
  parameters: [WORKFLOW_FILTER, JOB, ...Object.values(historyFilters), ...historyPage.described],
  answer: pageResponse('events', eventResource),
  errors: {
    field_invalid: 'A parameter has a bad value',
    workflow_not_found: 'No workflow found',
    job_not_found: 'No job found',
  },

  async handle(call) {
    const { services, caller, query, path, reply } = call;
    const { store } = services;
    const { teamId } = caller;
    const filter = readGiven(query, historyFilters);
    const limit = historyPage.limitOf(query);
    const before = historyOrder.from(query);
    const { workflowId } = await workflowFilter(call);
    const jobId = JOB.read(query);
    const job = jobId === undefined ? undefined : await store.jobs.get({ teamId, id: idFrom('job', jobId) });
    const isTheirs = job !== undefined && (workflowId === undefined || workflowId === job.workflowId);
    if (jobId !== undefined && !isTheirs) throw new Problem('job_not_found');
    const { events, next } = await store.events.history({
      teamId,
      limit,
      ...filter,
      ...(before !== undefined && { before }),
      ...(workflowId !== undefined && { workflowId }),
      // The events of a job are among those of its workflow.
      ...(job && { jobId: job.id, workflowId: job.workflowId, ...within(job, filter) }),
    });
    if (next !== null) reply.header('link', nextLink(path, query, historyOrder.of({ id: next })));
    // The bodies exactly as stored: parsing would change numbers that a double cannot hold.
    reply.type('application/json; charset=utf-8');
    return reply.send(`{"events":[${events.map(({ body }) => body).join(',')}]}`);
  },
};

/** GET /v1/events/{eventId}/deliveries */
export const listEventDeliveries = listOperation({
  id: 'listEventDeliveries',
  group: 'Events',
  summary: 'Where an event went: its deliveries to all webhooks, newest first',
  name: 'deliveries',
  resource: deliveryResource,
  order: byId('before', 'dlv'),
  parameters: [pathParameter('eventId', 'Event id')],
  errors: { event_not_found: 'No event found' },
  async rows(call, range) {
    const { teamId, sequence } = await eventOf(call);
    return call.services.store.deliveries.ofEvent({ teamId, sequence, ...range });
  },
  show: shownDelivery,
});

/** The part of a period in which the job existed. */
function within(
  { createdAt, finishedAt }: Job,
  { since = 0, until = Number.POSITIVE_INFINITY }: { since?: number; until?: number },
): { since: number; until?: number } {
  const end = Math.min(until, finishedAt ?? Number.POSITIVE_INFINITY);
  return { since: Math.max(since, createdAt), ...(Number.isFinite(end) && { until: end }) };
}

/** GET /v1/events/types */
export const listEventTypes: Operation<KeyedCall> = {
  id: 'listEventTypes',
  group: 'Events',
  summary: 'Every type of event: its names, what it tells, the JSON Schema of its body, and an example',
  answer: jsonResponse(
    'The types',
    object({
      types: list(
        object({
          type: choice(EVENT_TYPES),
          aliases: list(
            text(),
            'Other names that a subscription may use, in any letter case. `*` is all types',
          ),
          description: text(),
          schema: anyObject('JSON Schema 2020-12 of the whole body'),
          example: eventResource,
        }),
      ),
    }),
  ),

  async handle() {
    return { types: EVENT_CATALOG.map((kind) => ({ ...kind, aliases: aliasesOf(kind.type) })) };
  },
};

/** GET /v1/samples/{eventType} */
export const readSample: Operation<KeyedCall> = {
  id: 'readSample',
  group: 'Events',
  summary: 'A sample of an event, as a list of one: the last of the team, else a typical one',
  description:
    'For products that want to see an event before there is a subscription. Of the last 2,000 events of the team the ' +
    'newest of this type is taken.',
  parameters: [pathParameter('eventType', 'A type of event, or another name of one')],
  answer: jsonResponse(
    'The sample',
    raw({ type: 'array', minItems: 1, maxItems: 1, items: eventResource.schema }),
    { 'x-sample': '`real`, or `typical` when there is none' },
  ),
  errors: { event_type_not_found: 'No such type of event' },

  async handle({ services, caller: { teamId }, params, reply }) {
    const type = params.eventType === undefined ? undefined : canonicalEvent(params.eventType);
    const typical = EVENT_CATALOG.find((kind) => kind.type === type);
    if (typical === undefined) {
      const mistake = params.eventType && eventNameMistake(params.eventType);
      throw new Problem('event_type_not_found', mistake?.endsWith('?') ? { sentence: mistake } : {});
    }
    const { events } = await services.store.events.history({ teamId, types: [typical.type], limit: 1 });
    const [last] = events;
    reply.header('x-sample', last === undefined ? 'typical' : 'real');
    if (last === undefined) return [{ ...typical.example, teamId }];
    return reply.type('application/json; charset=utf-8').send(`[${last.body}]`);
  },
};

/** Messages are short: a client that leaves this many bytes unread does not read. */
const MAX_BUFFERED = 256 * 1_024;

/** GET /v1/stream */
export const openStream: Operation<KeyedCall<'streams'>> = {
  id: 'openStream',
  weight: 'long',
  group: 'Events',
  summary: 'Tells what changes in the team, as server-sent events, until one of the two goes',
  description:
    'Messages `invalidate` name what may have changed, not what it is now: read that again. Their data is ' +
    `\`{ "kind", "ids" }\`, with the kinds ${NEWS_KINDS.join(', ')}; the ids of \`versions\` are those of workflows; ` +
    'null stands for any. `hello` says from when on nothing is missed. Jobs, workflows and versions are told of at once, ' +
    'the others within some seconds. The id of a message is the `sequence` of the last event: sent as `Last-Event-ID` it ' +
    `resumes. Every 15 seconds there is a comment. A reader that stalls is cut off; a team has at most ${MAX_STREAMS_OF_TEAM} streams.`,
  parameters: [
    {
      name: 'last-event-id',
      in: 'header',
      description: 'The id of the last message, by one that comes back',
      schema: { type: 'string', pattern: '^\\d{1,15}$' },
    },
  ],
  answer: {
    description: 'The stream',
    content: { 'text/event-stream': { schema: { type: 'string' } } },
  },
  errors: {
    field_invalid: '`Last-Event-ID` is none of this stream',
    overloaded: { description: 'Too many streams are open', headers: { 'retry-after': 'Seconds' } },
  },

  async handle({ services, caller, request, reply }) {
    const after = lastEventId(request.headers['last-event-id']);
    if (request.method === 'HEAD') {
      return reply.type('text/event-stream; charset=utf-8').send();
    }
    const { streams, log } = services;
    const stream = streams.open(caller, () => new EventStream(reply, { maxBuffered: MAX_BUFFERED }));
    try {
      await streams.listen({ caller, stream }, after);
    } catch (err) {
      log.warn({ err, requestId: request.id }, 'stream.not_begun');
      stream.end();
    }
    return reply;
  },
};

function lastEventId(value: string | string[] | undefined): number | undefined {
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string' || !/^\d{1,15}$/.test(value)) {
    return invalid('The header `Last-Event-ID` must be the id of a message of this stream, or be left out');
  }
  return Number(value);
}
