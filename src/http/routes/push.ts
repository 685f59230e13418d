/** POST /v1/workflows/{workflowId}/push: publishes the records in the body, then responds. */
import type { IncomingMessage } from 'node:http';
import { InterruptedError } from '../../jobs/attempt.ts';
import { PUSH_ENCODINGS, type PushEncoding, type PushFormat } from '../../jobs/push-records.ts';
import { jobHeaders } from '../../jobs/submit.ts';
import { Problem } from '../../model/error.ts';
import { MANY_RECORDS, PUSH_DROP_PERCENT } from '../../model/quality/judge.ts';
import { MODES } from '../../model/workflow.ts';
import { recordCounts } from '../../resources/job.ts';
import { recordResource } from '../../resources/workflow.ts';
import { integer, list, object, optional, text } from '../../std/shape.ts';
import { inviteBody, lingerOn } from '../input/body.ts';
import { choiceParameter, flagParameter } from '../input/query.ts';
import { IDEMPOTENCY_KEY, idempotencyKeyFrom, workflowIdFrom } from '../input/values.ts';
import { NDJSON_TYPES } from '../negotiate.ts';
import { jsonResponse, RETRY_AFTER } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { disconnectSignal } from '../server/exchange.ts';

const FORMATS: Readonly<Record<string, PushFormat>> = {
  'application/json': 'json',
  'text/csv': 'csv',
  ...Object.fromEntries(NDJSON_TYPES.map((name) => [name, 'ndjson'])),
};
/**
 * How much input is discarded after an early response. Only the time is limited, because the sender is authenticated.
 */
const LINGER = { ms: 10_000, bytes: Number.POSITIVE_INFINITY };

const NDJSON = `One JSON object per line. Also accepted as ${NDJSON_TYPES.slice(1).join(', ')}`;
const refusedHeaders = {
  'x-job-id': 'ID of the failed job',
  'x-job-reason':
    'Reason: `invalid_record`, `output` (the body does not match its content type or exceeds `limits.records`) or `guard` ' +
    '(also for a quota)',
};

const MODE = choiceParameter(
  'mode',
  MODES,
  'Effect on existing records (default: the mode of the workflow). In the order `replace`, `upsert`, ' +
    '`append`, only the mode of the workflow and later modes are allowed',
);
const ALLOW_DROP = flagParameter(
  'allowDrop',
  `\`true\` to allow a push that removes more than ${PUSH_DROP_PERCENT} % of ${MANY_RECORDS} or more records. ` +
    'The `expect.records.drop` of the workflow still applies',
);

export const pushRecords: Operation<PushCall> = {
  id: 'pushWorkflowRecords',
  weight: 'long',
  group: 'Workflows',
  summary: 'Push records',
  description:
    'Publishes the records in the body, all or none, for workflows whose source is `push`. With `onInvalid: skip` in the ' +
    'definition, invalid records are skipped. The body may have any length and be compressed with gzip or zstd. A push ' +
    'waits up to 30 seconds for the previous one.',
  parameters: [
    pathParameter('workflowId', 'Workflow ID'),
    MODE,
    ALLOW_DROP,
    {
      ...IDEMPOTENCY_KEY,
      description:
        'Unique key of the push. Repeating a published push with the same key within 24 hours returns its result and ' +
        'publishes nothing. Reusing the key with a different body fails with 422',
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
    'Records published',
    object({
      message: text(),
      jobId: text(),
      version: integer('Version that the push published or found unchanged'),
      records: recordCounts,
      warning: optional(
        text(
          `Warning, present if the push removed more than half of ${MANY_RECORDS} or more records, or did not meet an expectation`,
        ),
      ),
    }),
    { 'x-job-id': 'ID of the job', location: 'URL of the job' },
  ),
  errors: {
    not_push: 'The workflow does not accept pushes, or a parameter is not valid',
    workflow_not_found: 'No workflow found',
    push_timeout: 'Push took longer than `limits.timeout`',
    push_busy: {
      description: 'Another push did not finish within 30 seconds, or too many pushes are waiting',
      headers: { 'x-job-id': 'ID of the unfinished or canceled job', 'retry-after': RETRY_AFTER },
    },
    workflow_paused: 'The workflow is paused',
    push_canceled: 'The push was canceled',
    content_unsupported: 'Body is not JSON, NDJSON or CSV, or its encoding is not supported',
    idempotency_key_reused: '`idempotency-key` already used with a different body',
    push_refused: {
      description:
        'Records refused because one is not valid, the body is malformed, or a guard failed. Nothing was ' +
        'published',
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
    const { jobId, version, records, warning } = await asPusher(call, (long) =>
      services.pushes.run({
        teamId: caller.teamId,
        workflowId,
        mode,
        allowDrop,
        idempotencyKey,
        trace,
        format,
        encoding,
        bytes: bytesOf(request.raw),
        ...long,
      }),
    );
    reply.headers(jobHeaders({ id: jobId }));
    return { message: 'Records published', jobId, version, records, warning };
  },
};

export type PushCall = KeyedCall<'isReady' | 'isStopping' | 'longCalls' | 'pushes'>;

/**
 * Runs a job that lasts as long as the request. The job ends with the key and with the connection of the caller.
 *
 * @throws Problem `not_ready`; `stopping` or `request_malformed` when the job was interrupted
 */
export async function asPusher<Result>(
  { services, caller, request, reply }: PushCall,
  run: (long: { signal: AbortSignal; sender: AbortSignal; confirm(): Promise<void> }) => Promise<Result>,
): Promise<Result> {
  // Until the engine has started, it assumes that running jobs of this node are left over from before a restart.
  if (!services.isReady() && !services.isStopping()) throw new Problem('not_ready');
  const long = services.longCalls.follow(caller);
  const gone = new InterruptedError('The client disconnected before the push started');
  try {
    return await run({
      signal: long.signal,
      sender: disconnectSignal({ reply }, gone),
      confirm: () => long.confirm(),
    });
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error;
    const code = request.socket.destroyed ? 'request_malformed' : 'stopping';
    throw new Problem(code, { sentence: error.message, cause: error });
  } finally {
    long.end();
  }
}

/** Yields the body. If the reader stops early, the connection stays open for the response. */
async function* bytesOf(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  inviteBody(request);
  try {
    yield* request.iterator({ destroyOnReturn: false });
  } catch (cause) {
    throw new InterruptedError('The client disconnected before the end of the body', { cause });
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
    sentence: 'Send the records uncompressed, or with the header `content-encoding`: gzip or zstd',
  });
}
