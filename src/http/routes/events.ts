/** Events: lists in both orders, event types, samples, and the stream of changes. */

import { found, Problem } from '../../model/error.ts';
import { aliasesOf, canonicalEvent, EVENT_TYPES, eventNameMistake } from '../../model/event.ts';
import { EVENT_CATALOG } from '../../model/event-catalog.ts';
import type { Job } from '../../model/job.ts';
import { deliveryResource, shownDelivery } from '../../resources/delivery.ts';
import { eventResource } from '../../resources/event.ts';
import { IDS } from '../../resources/examples.ts';
import { anyObject, choice, integer, list, object, raw, text } from '../../std/shape.ts';
import type { StoredEvent } from '../../store/operations/events.ts';
import type { Store } from '../../store/store.ts';
import { sendWithETag } from '../caching.ts';
import { filterParameter } from '../input/filter.ts';
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
import { jsonResponse, pageResponse, RETRY_AFTER } from '../openapi/content.ts';
import { type KeyedCall, type Operation, type Parameter, pathParameter } from '../route.ts';
import { disconnectSignal } from '../server/exchange.ts';
import { EventStream } from '../streams/event-stream.ts';
import { matchesAfter, matchesOnPage } from '../streams/matching-events.ts';
import { MAX_STREAMS_OF_TEAM } from '../streams/streams.ts';
import { NEWS_KINDS } from '../streams/team-news.ts';

const DEFAULT_LIMIT = 100;
/** Events have at most 20 kB, so that a response stays under 5 MB. */
const MAX_LIMIT = 250;
const AFTER: Parameter = {
  name: 'after',
  in: 'query',
  description: '`sequence` of the last event that the client has. 0: all events; `now`: only new events',
  // The type is a string, because generated clients of some languages cannot express a parameter of two types.
  schema: { type: 'string', pattern: '^(now|\\d{1,15})$', default: '0', minLength: 1 },
};
const LIMIT = numberParameter('limit', `Maximum number of events (default: ${DEFAULT_LIMIT})`, {
  least: 1,
  most: MAX_LIMIT,
});
const WAIT = numberParameter('wait', 'Seconds to wait for an event if there is none (default: 0)', {
  most: 25,
});

const FILTER = filterParameter(
  'Only events that match this expression, with only the differences that match: what a webhook with this filter would ' +
    'receive, except that the first version is not skipped',
);

/** GET /v1/events */
export const listEvents: Operation<KeyedCall<'eventWaits' | 'longCalls' | 'examiner'>> = {
  id: 'listEvents',
  weight: 'long',
  group: 'Events',
  summary: 'List events',
  description:
    'Returns the events of the team after a sequence number, oldest first, exactly as webhooks receive them. To catch ' +
    'up, pass `next` as `after` in the next call. With `wait`, the response is delayed until there is an event or ' +
    'the time is over. With `filter`, each call examines a limited number of events: it may return few or none although ' +
    '`Link` has a next page, and `next` is the sequence of the last event that was examined.',
  parameters: [AFTER, LIMIT, WAIT, FILTER],
  answer: jsonResponse(
    'Events in order',
    object({ events: list(eventResource), next: integer('Value of `after` for the next call') }),
    {
      Link: 'URL of the next page, with `rel="next"`, if `limit` was reached or not all events were examined',
    },
  ),
  errors: {
    field_invalid: 'A parameter has an invalid value',
    overloaded: { description: 'Too many calls are waiting', headers: { 'retry-after': RETRY_AFTER } },
  },

  async handle(call) {
    const { services, caller, query, reply } = call;
    const { teamId } = caller;
    const from = afterFrom(query);
    const limit = LIMIT.read(query) ?? DEFAULT_LIMIT;
    const waitMs = (WAIT.read(query) ?? 0) * 1_000;
    const filter = await FILTER.filterFrom(query);
    const signal = disconnectSignal(call);
    const search = { ...services, teamId, limit, signal };
    const read = (after: number) =>
      filter === undefined ? eventsAfter(search, after) : matchesAfter({ ...search, filter }, after);
    let page = await read(from ?? (await services.store.events.newestSequence({ teamId })));
    if (page.bodies.length === 0 && page.isEnd && waitMs > 0) {
      const long = services.longCalls.follow(caller);
      const endMs = performance.now() + waitMs;
      try {
        let after: number;
        do {
          after = page.next;
          const ms = Math.max(0, endMs - performance.now());
          const either = AbortSignal.any([signal, long.signal]);
          await services.eventWaits.until({ teamId, after, ms, signal: either });
          page = await read(after);
          // If nothing happened, the wait is over. Events that do not match do not end it before its time.
        } while (page.next > after && page.bodies.length === 0 && page.isEnd && performance.now() < endMs);
        await long.confirm();
      } finally {
        long.end();
      }
    }
    const { bodies, next, isEnd } = page;
    if (!isEnd) reply.header('link', nextLink('/v1/events', query, String(next), 'after'));
    // The bodies are sent exactly as stored, because parsing would change numbers that a double cannot hold.
    reply.type('application/json; charset=utf-8');
    return reply.send(`{"events":[${bodies.join(',')}],"next":${next}}`);
  },
};

async function eventsAfter(
  { store, teamId, limit }: { store: Store; teamId: string; limit: number },
  after: number,
): Promise<{ bodies: string[]; next: number; isEnd: boolean }> {
  const found = await store.events.list({ teamId, afterSequence: after, limit });
  const next = found.at(-1)?.sequence ?? after;
  return { bodies: found.map(({ body }) => body), next, isEnd: found.length < limit };
}

/** GET /v1/events/{eventId} */
export const readEvent: Operation<KeyedCall> = {
  id: 'readEvent',
  group: 'Events',
  etag: true,
  summary: 'Read an event',
  description: 'Returns the event exactly as webhooks receive it.',
  parameters: [pathParameter('eventId', 'Event ID')],
  answer: jsonResponse('Event', eventResource),
  errors: { event_not_found: 'No event found' },

  async handle(call) {
    return sendWithETag(call, (await eventOf(call)).body);
  },
};

/** The event whose ID is in the path. @throws Problem `event_not_found` */
export async function eventOf(call: KeyedCall): Promise<StoredEvent> {
  return found(await call.services.store.events.get(keyOfPath(call, 'evt')), 'event_not_found');
}

/** Undefined for `now`. */
function afterFrom(query: string): number | undefined {
  const text = queryValue(query, 'after') ?? '0';
  if (/^(now|\d{1,15})$/.test(text)) return text === 'now' ? undefined : Number(text);
  return invalid('The query parameter `after` must be the `sequence` of an event, or `now`');
}

const historyOrder = byId('before', 'evt');
const historyPage = pageParameters(historyOrder.of({ id: IDS.event }), {
  usual: DEFAULT_LIMIT,
  most: MAX_LIMIT,
});
const historyFilters = {
  types: choicesParameter('type', EVENT_TYPES, 'Filter by type'),
  ...PERIOD,
};
const JOB = textParameter('jobId', 'Filter by job ID');

/** GET /v1/events/history */
export const listEventHistory: Operation<KeyedCall<'examiner'>> = {
  id: 'listEventHistory',
  group: 'Events',
  summary: 'List event history',
  description:
    'Returns the events of the team, newest first, exactly as webhooks receive them. With `type`, `jobId` or `filter`, ' +
    'each page searches a limited number of events: a page may be short or empty although `Link` has a next page.',
  parameters: [WORKFLOW_FILTER, JOB, ...Object.values(historyFilters), FILTER, ...historyPage.described],
  answer: pageResponse('events', eventResource),
  errors: {
    field_invalid: 'A parameter has an invalid value',
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
    const expression = await FILTER.filterFrom(query);
    const job = jobId === undefined ? undefined : await store.jobs.get({ teamId, id: idFrom('job', jobId) });
    const isTheirs = job !== undefined && (workflowId === undefined || workflowId === job.workflowId);
    if (jobId !== undefined && !isTheirs) throw new Problem('job_not_found');
    const page = await store.events.history({
      teamId,
      limit,
      ...filter,
      ...(before !== undefined && { before }),
      ...(workflowId !== undefined && { workflowId }),
      // The events of a job are among those of its workflow.
      ...(job && { jobId: job.id, workflowId: job.workflowId, ...within(job, filter) }),
    });
    const { bodies, next } =
      expression === undefined
        ? { bodies: page.events.map(({ body }) => body), next: page.next }
        : await matchesOnPage(
            { ...services, teamId, filter: expression, limit, signal: disconnectSignal(call) },
            page,
          );
    if (next !== null) reply.header('link', nextLink(path, query, historyOrder.of({ id: next })));
    // The bodies are sent exactly as stored, because parsing would change numbers that a double cannot hold.
    reply.type('application/json; charset=utf-8');
    return reply.send(`{"events":[${bodies.join(',')}]}`);
  },
};

/** GET /v1/events/{eventId}/deliveries */
export const listEventDeliveries = listOperation({
  id: 'listEventDeliveries',
  group: 'Events',
  summary: 'List deliveries of an event',
  description: 'Returns the deliveries to all webhooks, newest first.',
  name: 'deliveries',
  resource: deliveryResource,
  order: byId('before', 'dlv'),
  parameters: [pathParameter('eventId', 'Event ID')],
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
  summary: 'List event types',
  description:
    'Returns each type with its aliases, a description, the JSON Schema of the event, and an example.',
  answer: jsonResponse(
    'Event types',
    object({
      types: list(
        object({
          type: choice(EVENT_TYPES),
          aliases: list(
            text(),
            'Other names that subscriptions may use, in any letter case. `*` subscribes to all types',
          ),
          description: text(),
          schema: anyObject('JSON Schema 2020-12 of the event'),
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
  id: 'readEventSample',
  group: 'Events',
  summary: 'Read a sample event',
  description:
    'Returns a list with one event, for tools that need an example before subscribing: the newest event of this type ' +
    'among the last 2,000 of the team, or else a typical event.',
  parameters: [pathParameter('eventType', 'Event type or one of its aliases')],
  answer: jsonResponse(
    'List with one event',
    raw({ type: 'array', minItems: 1, maxItems: 1, items: eventResource.schema }),
    { 'x-sample': '`real` for an event of the team, otherwise `typical`' },
  ),
  errors: { event_type_not_found: 'No such event type' },

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

/** Messages are short, so a client with this many unread bytes does not keep up. */
const MAX_BUFFERED = 256 * 1_024;

const STREAM_FILTER = filterParameter('Report the events that match this expression instead of changes');

/** GET /v1/stream */
export const openStream: Operation<KeyedCall<'streams' | 'examiner'>> = {
  id: 'openStream',
  weight: 'long',
  group: 'Events',
  summary: 'Stream changes',
  description:
    'Sends server-sent events until the client or the service disconnects. `hello` marks the point after which no ' +
    'change is missed. `invalidate` names what may have changed and should be read again; its data is ' +
    `\`{ "kind", "ids" }\`. Kinds: ${NEWS_KINDS.join(', ')}. For \`versions\`, \`ids\` are workflow IDs. ` +
    'If `ids` is `null`, any item of that kind may have changed. Changes that events report, such as new versions and the states of jobs, are sent ' +
    'immediately, others within a few seconds. The id of a message is the `sequence` of the last event: send it as `Last-Event-ID` to resume. A comment ' +
    'is sent every 15 seconds. With `filter`, the stream sends a message `event` for each event that matches instead of ' +
    '`invalidate`; its data is `{ "id", "sequence", "type", "workflowId", "jobId", "timestamp" }`. Clients that do not ' +
    'keep up are disconnected. Limit: ' +
    `${MAX_STREAMS_OF_TEAM} streams per team.`,
  parameters: [
    STREAM_FILTER,
    {
      name: 'last-event-id',
      in: 'header',
      description: 'ID of the last message received, to resume the stream',
      schema: { type: 'string', pattern: '^\\d{1,15}$' },
    },
  ],
  answer: {
    description: 'Server-sent events',
    content: { 'text/event-stream': { schema: { type: 'string' } } },
  },
  errors: {
    field_invalid: '`Last-Event-ID` is not an ID of this stream',
    overloaded: { description: 'Too many streams are open', headers: { 'retry-after': RETRY_AFTER } },
  },

  async handle({ services, caller, query, request, reply }) {
    const after = lastEventId(request.headers['last-event-id']);
    const filter = await STREAM_FILTER.filterFrom(query);
    if (request.method === 'HEAD') {
      return reply.type('text/event-stream; charset=utf-8').send();
    }
    const { streams, examiner, log } = services;
    const stream = streams.open(caller, () => new EventStream(reply, { maxBuffered: MAX_BUFFERED }));
    try {
      if (filter === undefined) await streams.listen({ caller, stream }, after);
      else await streams.listenTo({ caller, stream }, { filter, examiner }, after);
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
    return invalid('The header `Last-Event-ID` must be the ID of a message of this stream');
  }
  return Number(value);
}
