/** The log of a job as server-sent events, from its beginning or a resumed place to the end of the job. */
import type { Job } from '../../model/job.ts';
import { ENDED, shownJob, shownLine } from '../../resources/job.ts';
import { queryNumber, queryValue } from '../query.ts';
import type { KeyedCall } from '../route.ts';
import { EventStream } from '../streams/event-stream.ts';
import { invalid } from '../values.ts';
import { jobOf } from './jobs.ts';

/** Lines per read. The next read waits until the client has taken these. */
const LINES_AT_ONCE = 1_000;
const MAX_BUFFERED = 8 * 1_048_576;
/** How often to look for lines, which are written once a second; a commit that changes jobs is noticed at once. */
const LOOK_MS = 1_000;

interface Place {
  attempt: number;
  seq: number;
}

/** Whether the client names server-sent events; wildcards do not count. */
export function wantsStream(accept: string | undefined): boolean {
  return /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(accept ?? '');
}

/** Answers with messages `line` and a last `end`. With `attempt` in the query only that attempt is followed. */
export async function streamJobLog(call: KeyedCall): Promise<unknown> {
  const { services, caller, query, request, reply } = call;
  const only = queryNumber(query, 'attempt', { least: 1 });
  const afterSeq = queryNumber(query, 'after', { least: 0 }) ?? 0;
  if (queryValue(query, 'limit') !== undefined) {
    invalid(
      'The query parameter `limit` is not for streams, which go on to the end of the job: leave it out',
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
      // Read before its lines: once the job has ended, no further lines come.
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
    return invalid('The header `Last-Event-ID` must be the id of a message of this log, or be left out');
  }
  return { attempt: Number(found[1]), seq: Number(found[2]) };
}
