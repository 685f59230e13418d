/** One trace across three nodes: one serves HTTP, one runs jobs, one delivers. The database passes the trace on. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startTraceReceiver } from '../support/observe/trace-receiver.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/service.ts';
import { testDatabase } from '../support/test-database.ts';

process.env.FLOWHOOK_TEST_STORE = 'postgres';
const database = await testDatabase('');
after(() => database.drop());

test('a trace continues from the node that queues a job to the ones that run it and deliver its events', async () => {
  const traces = await startTraceReceiver();
  const receiver = await startReceiver();
  const workflows = {
    'default/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n`,
  };
  const node = (settings: Record<string, string>): Promise<TestService> =>
    startService({ workflows, settings: { ...database.settings, ...settings } });
  // Fills the empty database from its files.
  await (await node({})).stop();
  const traced = (role: string) =>
    node({
      FLOWHOOK_ROLE: role,
      FLOWHOOK_ALLOW_NETWORKS: 'loopback',
      OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
      OTEL_SERVICE_NAME: role,
      OTEL_BSP_SCHEDULE_DELAY: '20',
    });
  const [api, ...others] = [await traced('api'), await traced('worker'), await traced('sender')];
  await api.call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: receiver.url,
    events: ['workflow_finished'],
  });
  const traceId = 'a1'.repeat(16);
  const traceparent = `00-${traceId}-${'b2'.repeat(8)}-01`;
  assert.equal(
    (await api.call('POST', '/v1/workflows/people/queue', undefined, { traceparent })).status,
    200,
  );
  const spanOf = (service: string) =>
    traces.until(
      (spans) => spans.find((span) => span.traceId === traceId && span.resource['service.name'] === service),
      service,
    );
  const [request, job, delivery] = [await spanOf('api'), await spanOf('worker'), await spanOf('sender')];
  assert.deepEqual(
    [request.name, job.name, delivery.name],
    ['POST /v1/workflows/{workflowId}/queue', 'process job', 'POST workflow_finished'],
  );
  assert.deepEqual([job.parentSpanId, delivery.parentSpanId], [request.spanId, job.spanId]);

  await receiver.until((received) => received.length === 1, 'the event');
  const header = String(receiver.received[0]?.headers.traceparent);
  assert.equal(header, `00-${traceId}-${delivery.spanId}-01`);
  for (const one of [...others, api]) await one.stop();
  await receiver.stop();
  await traces.stop();
});
