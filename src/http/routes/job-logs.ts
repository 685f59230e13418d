/** The log of a job: pages of one attempt, or a stream until the job ends. */

import type { Job } from '../../model/job.ts';
import { ENDED, logLineResource, shownJob, shownLine, textOf } from '../../resources/job.ts';
import { grouped } from '../../std/amounts.ts';
import { integer, list, nullable, object } from '../../std/shape.ts';
import { nextLink } from '../input/list-page.ts';
import { formatParameter, numberParameter } from '../input/query.ts';
import { invalid } from '../input/values.ts';
import { acceptedFormat } from '../negotiate.ts';
import { jsonResponse, RETRY_AFTER, textContent } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { EventStream } from '../streams/event-stream.ts';
import { jobOf } from './jobs.ts';

const FORMATS = ['json', 'ndjson', 'text'] as const;
const CONTENT_TYPES = { ndjson: 'application/x-ndjson; charset=utf-8', text: 'text/plain; charset=utf-8' };
const DEFAULT_LIMIT = 1_000;
const FORMAT = formatParameter(FORMATS);
const ATTEMPT = numberParameter('attempt', 'Attempt number (default: the last attempt)', { least: 1 });
const AFTER = numberParameter('after', 'Only lines with a higher `seq`');
const LIMIT = numberParameter('limit', `Maximum number of lines (default: ${grouped(DEFAULT_LIMIT)})`, {
  least: 1,
  most: 10_000,
});

/** GET /v1/jobs/{jobId}/logs */
export const readJobLogs: Operation<KeyedCall<'streams'>> = {
  id: 'readJobLogs',
  group: 'Jobs',
  summary: 'Read the log of a job',
  description:
    'Returns the log of one attempt: its first and last MiB. To read all lines, also while the attempt runs, pass ' +
    '`next` as `after` until `next` is `null`; in text and NDJSON, `Link` has the URL of the next page. With `Accept: ' +
    'text/event-stream`, the response follows the log until the job ends: `line` messages with the `attempt`, then an ' +
    '`end` message with the job. Send `Last-Event-ID` to resume.',
  parameters: [pathParameter('jobId', 'Job ID'), ATTEMPT, AFTER, LIMIT, FORMAT],
  answer: jsonResponse(
    'Log lines in order',
    object({
      attempt: integer(),
      lines: list(logLineResource),
      next: nullable(integer('Value of `after` for the next call. `null` if these were the last lines')),
    }),
    { Link: 'URL of the next page, with `rel="next"`, if there may be more lines (text and NDJSON only)' },
    {
      'application/x-ndjson': textContent(),
      'text/plain': textContent(),
      'text/event-stream': textContent('Server-sent events `line` and `end`'),
    },
  ),
  errors: {
    field_invalid: 'A parameter has an invalid value',
    job_not_found: 'No job found',
    overloaded: { description: 'Too many streams are open', headers: { 'retry-after': RETRY_AFTER } },
  },

  async handle(call) {
    const { services, request, query, reply } = call;
    const named = FORMAT.read(query);
    if (named === undefined && wantsStream(request.headers.accept)) return streamJobLog(call);
    const format = named ?? acceptedFormat(request.headers.accept, FORMATS);
    const afterSeq = AFTER.read(query) ?? 0;
    const limit = LIMIT.read(query) ?? DEFAULT_LIMIT;
    const asked = ATTEMPT.read(query);
    // The job is read before its lines, because no lines are added after a job has ended.
    const job = await jobOf(call);
    const attempt = asked ?? job.attempt;
    const found = await services.store.jobs.log({
      teamId: job.teamId,
      jobId: job.id,
      attempt,
      afterSeq,
      limit: limit + 1,
    });
    const lines = found.slice(0, limit);
    const isGrowing = attempt > job.attempt || (attempt === job.attempt && job.finishedAt === null);
    const next = found.length > limit || isGrowing ? (lines.at(-1)?.seq ?? afterSeq) : null;
    if (format === 'json') return { attempt, lines: lines.map(shownLine), next };
    if (next !== null) {
      reply.header('link', nextLink(`/v1/jobs/${job.id}/logs`, query, String(next), 'after'));
    }
    const written =
      format === 'text' ? lines.map(textOf) : lines.map((line) => JSON.stringify(shownLine(line)));
    return reply.type(CONTENT_TYPES[format]).send(written.map((line) => `${line}\n`).join(''));
  },
};

/** Lines per read. The next read waits until the client has read these. */
const LINES_AT_ONCE = 1_000;
const MAX_BUFFERED = 8 * 1_048_576;
/** How often to look for new lines, which are written once a second. Commits that change jobs wake the loop earlier. */
const LOOK_MS = 1_000;

interface Place {
  attempt: number;
  seq: number;
}

/** Whether `Accept` lists server-sent events explicitly; wildcards do not count. */
function wantsStream(accept: string | undefined): boolean {
  return /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(accept ?? '');
}

/** Sends `line` messages and a final `end`. With `attempt` in the query, only that attempt is followed. */
async function streamJobLog(call: KeyedCall<'streams'>): Promise<unknown> {
  const { services, caller, query, request, reply } = call;
  const only = ATTEMPT.read(query);
  const afterSeq = AFTER.read(query) ?? 0;
  if (LIMIT.read(query) !== undefined) {
    invalid(
      'The query parameter `limit` cannot be used with a stream, which continues until the job ends: omit it',
    );
  }
  const resumed = placeFrom(request.headers['last-event-id']);
  const job = await jobOf(call);
  if (request.method === 'HEAD') {
    return reply.type('text/event-stream; charset=utf-8').send();
  }
  const stream = services.streams.open(caller, () => new EventStream(reply, { maxBuffered: MAX_BUFFERED }));
  const place = resumed ?? { attempt: only ?? Math.max(1, job.attempt), seq: afterSeq };
  try {
    await follow(call, { stream, job, place, only });
  } catch (err) {
    services.log.warn({ err, requestId: request.id }, 'stream.broken');
  }
  stream.end();
  return reply;
}

async function follow(
  { services: { store }, caller }: KeyedCall,
  input: { stream: EventStream; job: Job; place: Place; only: number | undefined },
): Promise<void> {
  const { stream, only } = input;
  const { teamId, id: jobId } = input.job;
  let { attempt, seq } = input.place;
  let wake = () => {};
  const unwatch = store.watch(({ jobs }) => jobs && wake());
  void stream.closed.then(() => wake());
  try {
    while (stream.isOpen && (await caller.isStillGood())) {
      // The job is read before its lines, because no lines are added after a job has ended.
      const job = await store.jobs.get({ teamId, id: jobId });
      if (job === undefined) return;
      const lines = await store.jobs.log({ teamId, jobId, attempt, afterSeq: seq, limit: LINES_AT_ONCE });
      for (const line of lines) {
        stream.send({ event: 'line', id: `${attempt}.${line.seq}`, data: { attempt, ...shownLine(line) } });
      }
      seq = lines.at(-1)?.seq ?? seq;
      await stream.drained();
      if (lines.length === LINES_AT_ONCE) continue;
      const hasEnded = ENDED.includes(job.state);
      if (attempt < job.attempt && only === undefined) {
        attempt += 1;
        seq = 0;
      } else if (hasEnded || attempt < job.attempt) {
        stream.send({ event: 'end', data: shownJob(job) });
        return;
      } else {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK_MS);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    }
  } finally {
    unwatch();
  }
}

function placeFrom(value: string | string[] | undefined): Place | undefined {
  if (value === undefined || value === '') return undefined;
  const found = typeof value === 'string' ? /^(\d{1,9})\.(\d{1,15})$/.exec(value) : null;
  if (found === null || Number(found[1]) === 0) {
    return invalid('The header `Last-Event-ID` must be the ID of a message of this log');
  }
  return { attempt: Number(found[1]), seq: Number(found[2]) };
}
