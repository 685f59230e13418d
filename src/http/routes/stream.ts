/** A stream of what changes in a team, for programs that show it. */
import type { KeyedCall, Operation } from '../route.ts';
import { EventStream } from '../streams/event-stream.ts';
import { MAX_STREAMS_OF_TEAM } from '../streams/streams.ts';
import { NEWS_KINDS } from '../streams/team-news.ts';
import { invalid } from '../values.ts';

/** Messages are short: a client that leaves this many bytes unread does not read. */
const MAX_BUFFERED = 256 * 1_024;

/** GET /v1/stream */
export const openStream: Operation<KeyedCall> = {
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
  refusals: {
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
