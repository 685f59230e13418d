/** Without an endpoint for traces, OpenTelemetry is not loaded and no traces are stored. */
import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { after, test } from 'node:test';

const loaded: string[] = [];
registerHooks({
  load(url, context, next) {
    if (url.includes('/@opentelemetry/')) loaded.push(url);
    return next(url, context);
  },
});
// Imported after the hooks are registered.
const { startReceiver } = await import('../support/receiver.ts');
const { startService } = await import('../support/service.ts');
const { startTraceReceiver } = await import('../support/observe/trace-receiver.ts');

const workflows = { 'default/people.yaml': `source: { type: command, command: [printf, '{"id":1}\\n'] }\n` };
const receiver = await startReceiver();
after(() => receiver.stop());

test('without traces, loads no code for them, stores none and sends none', async () => {
  const service = await startService({ workflows });
  await service.call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: receiver.url,
    events: ['workflow_finished'],
  });
  const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
  const queued = await service.call('POST', '/v1/workflows/people/queue', undefined, { traceparent });
  await receiver.until((received) => received.length === 1, 'the end of the job');
  const id = queued.headers.get('x-job-id') ?? '';
  assert.equal((await service.store.jobs.get({ teamId: service.team.id, id }))?.trace, null);
  assert.equal(receiver.received[0]?.headers.traceparent, undefined);
  await service.stop();
  assert.deepEqual(loaded, []);
});

test('with traces, loads OpenTelemetry', async () => {
  const traces = await startTraceReceiver();
  const service = await startService({ workflows, settings: { OTEL_EXPORTER_OTLP_ENDPOINT: traces.url } });
  await service.stop();
  await traces.stop();
  assert.ok(loaded.some((url) => url.includes('/@opentelemetry/sdk-trace/')));
});
