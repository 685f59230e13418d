/** POST /v1/workflows/{workflowId}/push: records arrive in the body and are published before the answer. */
import type { IncomingMessage } from 'node:http';
import { BrokenOffError } from '../../jobs/attempt.ts';
import { PUSH_ENCODINGS, type PushEncoding, type PushFormat } from '../../jobs/push-records.ts';
import { jobHeaders } from '../../jobs/submit.ts';
import { Problem } from '../../model/error.ts';
import { MANY_RECORDS, PUSH_DROP_PERCENT } from '../../model/staging.ts';
import { MODES } from '../../model/workflow.ts';
import { recordCounts } from '../../resources/job.ts';
import { recordResource } from '../../resources/workflow.ts';
import { integer, list, object, optional, text } from '../../std/shape.ts';
import { inviteBody, lingerOn } from '../input/body.ts';
import { choiceParameter, flagParameter } from '../input/query.ts';
import { IDEMPOTENCY_KEY, idempotencyKeyFrom, workflowIdFrom } from '../input/values.ts';
import { NDJSON_TYPES } from '../negotiate.ts';
import { jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { disconnectSignal } from '../server/exchange.ts';

const FORMATS: Readonly<Record<string, PushFormat>> = {
  'application/json': 'json',
  'text/csv': 'csv',
  ...Object.fromEntries(NDJSON_TYPES.map((name) => [name, 'ndjson'])),
};
/** How long input is still discarded after an early answer, whatever its length: who pushes is known. */
const LINGER = { ms: 10_000, bytes: Number.POSITIVE_INFINITY };

const NDJSON = `One JSON object a line. Also as ${NDJSON_TYPES.slice(1).join(', ')}`;
const refusedHeaders = {
  'x-job-id': 'The job that failed',
  'x-job-reason': 'Why: `invalid_record`, `output` (not the form that the content type names), `guard`',
};

const MODE = choiceParameter(
  'mode',
  MODES,
  'What the push does to the records of earlier ones: the workflow’s own mode, or one that may do less ' +
    '(`replace`, then `upsert`, then `append`)',
);
const ALLOW_DROP = flagParameter(
  'allowDrop',
  `\`true\` to let the push remove more than ${PUSH_DROP_PERCENT} % of at least ${MANY_RECORDS} records, which is ` +
    'refused otherwise. A `maxDropPercent` that the workflow itself has holds all the same',
);

export const pushRecords: Operation<KeyedCall<'isReady' | 'isStopping' | 'longCalls' | 'pushes'>> = {
  id: 'pushWorkflowRecords',
  weight: 'long',
  group: 'Workflows',
  summary: 'Publishes the records in the body',
  description:
    'For workflows whose source is `push`. The body may be of any length, and compressed with gzip or zstd. ' +
    'Either all of its records are published or none. A push waits up to 30 seconds for the one before it.',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    MODE,
    ALLOW_DROP,
    {
      ...IDEMPOTENCY_KEY,
      description:
        'A call with the same key within 24 hours of one that published is answered as that was. With another body it ' +
        'is refused',
    },
  ],
  requestBody: {
    required: true,
    content: {
      'application/json': { schema: list(recordResource).schema },
      'application/x-ndjson': { schema: { type: 'string', description: NDJSON } },
      'text/csv': { schema: { type: 'string', description: 'RFC 4180, UTF-8, with a header row' } },
    },
  },
  answer: jsonResponse(
    'The records are published',
    object({
      message: text(),
      jobId: text(),
      version: integer('The version that it published or found unchanged'),
      records: recordCounts,
      warning: optional(
        text(`There when the push removed more than half of at least ${MANY_RECORDS} records`),
      ),
    }),
    { 'x-job-id': 'The job', location: 'Where the job can be read' },
  ),
  errors: {
    not_push: 'The workflow does not receive pushes or is paused, or a parameter is not valid',
    workflow_not_found: 'No workflow found',
    push_timeout: 'The push took longer than `limits.timeout`',
    push_busy: {
      description: 'Another push of this workflow took longer than 30 seconds',
      headers: { 'x-job-id': 'The job in the way', 'retry-after': 'Seconds' },
    },
    content_unsupported: 'The body is not JSON, NDJSON or CSV, or its encoding is not read here',
    idempotency_key_reused: 'The key has published another body',
    push_refused: {
      description: 'A record, the form of the body or a guard is in the way: nothing was published',
      headers: refusedHeaders,
    },
  },
  streamsBody: true,

  async handle(call) {
    const { services, caller, params, query, trace, request, reply } = call;
    const { headers } = request;
    reply.raw.once('finish', () => lingerOn(request.raw, LINGER));
    const format = formatFrom(headers['content-type']);
    const encoding = encodingFrom(headers['content-encoding']);
    const mode = MODE.read(query);
    const allowDrop = ALLOW_DROP.read(query) ?? false;
    const idempotencyKey = idempotencyKeyFrom(call);
    const workflowId = workflowIdFrom(params.workflowId);
    // Until the engine has started, it takes every running job of this node for one left over from before a restart.
    if (!services.isReady() && !services.isStopping()) throw new Problem('not_ready');
    const long = services.longCalls.follow(caller);
    try {
      const { jobId, version, records, warning } = await services.pushes.run({
        teamId: caller.teamId,
        workflowId,
        mode,
        allowDrop,
        idempotencyKey,
        trace,
        format,
        encoding,
        bytes: bytesOf(request.raw),
        signal: long.signal,
        confirm: () => long.confirm(),
        sender: disconnectSignal(
          { reply },
          new BrokenOffError('The connection broke off before the push had begun'),
        ),
      });
      reply.headers(jobHeaders({ id: jobId }));
      return { message: 'Records published', jobId, version, records, warning };
    } catch (error) {
      if (!(error instanceof BrokenOffError)) throw error;
      const code = request.raw.destroyed ? 'request_malformed' : 'stopping';
      throw new Problem(code, { sentence: error.message, cause: error });
    } finally {
      long.end();
    }
  },
};

/** The body. Not reading to its end leaves the connection open for the answer. */
async function* bytesOf(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  inviteBody(request);
  try {
    yield* request.iterator({ destroyOnReturn: false });
  } catch (cause) {
    throw new BrokenOffError('The connection broke off before the end of the body', { cause });
  }
}

function formatFrom(contentType: string | undefined): PushFormat {
  const format = FORMATS[contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''];
  if (format !== undefined) return format;
  throw new Problem('content_unsupported', {
    sentence: `Send the records with the header \`content-type\`: application/json, application/x-ndjson or text/csv`,
  });
}

function encodingFrom(contentEncoding: string | string[] | undefined): PushEncoding {
  const name = String(contentEncoding ?? 'identity')
    .trim()
    .toLowerCase();
  const encoding = PUSH_ENCODINGS.find((known) => known === name);
  if (encoding !== undefined) return encoding;
  throw new Problem('content_unsupported', {
    sentence: 'Send the records as they are, or with the header `content-encoding`: gzip or zstd',
  });
}
