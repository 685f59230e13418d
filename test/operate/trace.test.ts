/** Traces of a whole service: from a request through its job to its deliveries. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fromTraceparent } from '../../src/observe/trace-context.ts';
import { amountOf, scrapeUntil } from '../support/observe/scrape.ts';
import { type ReceivedSpan, startTraceReceiver } from '../support/observe/trace-receiver.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const QUEUE = 'POST /v1/workflows/{workflowId}/queue';
const CALLER = { traceId: 'a1'.repeat(16), spanId: 'b2'.repeat(8) };

let aheadMs = 0;
const traces = await startTraceReceiver();
const receiver = await startReceiver();
const service = await startService({
  clock: () => Date.now() + aheadMs,
  workflows: {
    'default/people.yaml': `source: { type: command, command: [printf, '{"id":1,"mail":"ada@example.com"}\\n'] }\n`,
    'default/broken.yaml': `retries: { max: 1, backoff: 1ms }\nsource: { type: command, command: [sh, -c, 'echo unheard-of ada@example.com >&2; exit 7'] }\n`,
    'default/often.yaml': `schedule: { every: 1m }\nsource: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
    'default/inbox.yaml': 'source: { type: push }\n',
  },
  settings: {
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_SERVICE_NAME: 'flowhook-here',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  },
});
after(async () => {
  await service.stop();
  await receiver.stop();
  await traces.stop();
});

const subscribe = (workflowId: string, url: string) =>
  service.call('POST', '/v1/integrations/webhooks/subscribe', { workflowId, webhookUrl: url, events: ['*'] });

/** The first span with these attributes. */
function withAll(
  spans: readonly ReceivedSpan[],
  attributes: Record<string, unknown>,
): ReceivedSpan | undefined {
  return spans.find((span) =>
    Object.entries(attributes).every(([name, value]) => span.attributes[name] === value),
  );
}

test('one trace leads from a caller’s request through the job to the deliveries of its webhooks', async () => {
  await subscribe('people', `${receiver.url}?token=of-the-url`);
  const traceparent = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
  const queued = await service.call('POST', '/v1/workflows/people/queue', undefined, {
    traceparent,
    'x-request-id': 'from-the-test',
  });
  assert.equal(queued.status, 200);
  const jobId = queued.headers.get('x-job-id');
  const deliveryOf = (type: string) =>
    traces.until(
      (spans) => spans.find(({ name, traceId }) => name === `POST ${type}` && traceId === CALLER.traceId),
      type,
    );
  const request = await traces.until(
    (spans) => withAll(spans, { 'flowhook.request.id': 'from-the-test' }),
    QUEUE,
  );
  const job = await traces.until((spans) => withAll(spans, { 'flowhook.job.id': jobId }), 'the job');
  const queuedDelivery = await deliveryOf('workflow_queued');
  const finished = await deliveryOf('workflow_finished');

  assert.deepEqual(
    [request, job, queuedDelivery, finished].map(({ name, kind, isError }) => [name, kind, isError]),
    [
      [QUEUE, 2, false],
      ['process job', 5, false],
      ['POST workflow_queued', 3, false],
      ['POST workflow_finished', 3, false],
    ],
  );
  assert.deepEqual([request.traceId, request.parentSpanId], [CALLER.traceId, CALLER.spanId]);
  assert.deepEqual([job.traceId, job.parentSpanId], [CALLER.traceId, request.spanId]);
  assert.equal(queuedDelivery.parentSpanId, request.spanId);
  assert.equal(finished.parentSpanId, job.spanId);
  for (const span of [request, job, queuedDelivery, finished]) assert.ok(span.endMs >= span.startMs);

  assert.deepEqual(
    [request.attributes['http.response.status_code'], request.attributes['http.route']],
    [200, '/v1/workflows/{workflowId}/queue'],
  );
  assert.deepEqual(
    ['attempt', 'origin', 'source', 'outcome'].map((name) => job.attributes[`flowhook.job.${name}`]),
    [1, 'api', 'command', 'finished'],
  );
  assert.equal(job.attributes['flowhook.records.added'], 1);
  assert.deepEqual(
    ['server.address', 'server.port', 'http.response.status_code', 'http.request.resend_count'].map(
      (name) => finished.attributes[name],
    ),
    ['127.0.0.1', Number(new URL(receiver.url).port), 204, undefined],
  );
  const { resource } = finished;
  assert.deepEqual(
    [resource['service.name'], resource['deployment.environment.name']],
    ['flowhook-here', 'test'],
  );
  assert.equal(traces.headers()['x-tenant'], 'a b');

  // The endpoint can continue the trace from its own delivery.
  const arrived = receiver.received.find(({ event }) => event.type === 'workflow_finished');
  assert.deepEqual(fromTraceparent(String(arrived?.headers.traceparent)), {
    traceId: CALLER.traceId,
    spanId: finished.spanId,
    isSampled: true,
  });
  assert.equal(arrived?.event.id, finished.attributes['flowhook.event.id']);

  const sent = { result: 'sent' };
  await scrapeUntil(
    service.url,
    (families) => (amountOf(families, 'flowhook_trace_spans_total', sent) ?? 0) > 0,
  );
});

test('a delivery has the number of webhooks that led to it in its own header, not in its trace', async () => {
  await subscribe('inbox', receiver.url);
  const from = receiver.received.length;
  const headers = { 'flowhook-hops': '3', traceparent: `00-${'c3'.repeat(16)}-${CALLER.spanId}-01` };
  assert.equal(
    (await service.call('POST', '/v1/workflows/inbox/push', [{ id: 'far' }], headers)).status,
    200,
  );
  const sent = await until('the push is delivered', async () => receiver.received[from]);
  assert.equal(sent.headers['flowhook-hops'], '4');
  assert.match(String(sent.headers.traceparent), new RegExp(`^00-${'c3'.repeat(16)}-[0-9a-f]{16}-01$`));
});

test('failed attempts have an error type, and their parent is the request that queued the job', async () => {
  const queued = await service.call('POST', '/v1/workflows/broken/queue');
  const jobId = queued.headers.get('x-job-id');
  const attempt = (number: number) =>
    traces.until(
      (spans) => withAll(spans, { 'flowhook.job.id': jobId, 'flowhook.job.attempt': number }),
      `attempt ${number}`,
    );
  const [first, second] = [await attempt(1), await attempt(2)];
  assert.deepEqual(
    [first, second].map(({ isError, attributes }) => [
      isError,
      attributes['error.type'],
      attributes['flowhook.job.outcome'],
    ]),
    [
      [true, 'error', 'retrying'],
      [true, 'error', 'failed'],
    ],
  );
  assert.equal(second.traceId, first.traceId);
  assert.equal(second.parentSpanId, first.parentSpanId);
  assert.notEqual(second.spanId, first.spanId);
  const request = await traces.until(
    (spans) => spans.find(({ spanId }) => spanId === first.parentSpanId),
    'request',
  );
  assert.equal(request.name, QUEUE);
  assert.equal(request.parentSpanId, '', 'the request had no `traceparent`');
});

test('scheduled jobs and pushes have traces', async () => {
  aheadMs += 120_000;
  const scheduled = await traces.until(
    (spans) => withAll(spans, { 'flowhook.job.origin': 'schedule' }),
    'schedule',
  );
  assert.equal(scheduled.parentSpanId, '');
  const pushed = await service.call('POST', '/v1/workflows/inbox/push', [{ id: 1 }]);
  const { jobId } = pushed.body as { jobId: string };
  const push = await traces.until((spans) => withAll(spans, { 'flowhook.job.id': jobId }), 'push');
  const request = await traces.until(
    (spans) => spans.find(({ spanId }) => spanId === push.parentSpanId),
    'request',
  );
  assert.deepEqual([push.kind, request.name], [1, 'POST /v1/workflows/{workflowId}/push']);
});

test('ignores an invalid `traceparent`, and does not sample a trace that the caller did not sample', async () => {
  const ask = (traceparent: string, id: string) =>
    service.call('GET', '/v1/me', undefined, { traceparent, 'x-request-id': id });
  const parentOf = async (traceparent: string, id: string) => {
    await ask(traceparent, id);
    return (await traces.until((spans) => withAll(spans, { 'flowhook.request.id': id }), id)).parentSpanId;
  };
  const { traceId, spanId } = CALLER;
  await ask(`00-${traceId}-${spanId}-00`, 'not-kept');
  assert.equal(await parentOf(`00-${'0'.repeat(32)}-${spanId}-01`, 'no-trace'), '');
  assert.equal(await parentOf(`00-${traceId}-${spanId}`, 'too-short'), '');
  assert.equal(await parentOf(`cc-${traceId}-${spanId}-01-more`, 'later-version'), spanId);
  assert.equal(withAll(traces.spans, { 'flowhook.request.id': 'not-kept' }), undefined);
});

test('spans contain no keys, queries or personal data', async () => {
  const response = await service.call('GET', '/v1/workflows/grace@example.com/data?who=grace@example.com');
  assert.equal(response.status, 404);
  const route = 'GET /v1/workflows/{workflowId}/data';
  await traces.until((spans) => spans.find(({ name }) => name === route), route);
  const sent = traces.bodies.join('\n');
  for (const hidden of ['example.com', 'of-the-url', service.key, '/hook', 'unheard-of']) {
    assert.ok(!sent.includes(hidden), hidden);
  }
});
