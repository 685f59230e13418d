/** Sending spans to a receiver that is unavailable, refuses or hangs, and which traces are sampled. */
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { startTraceReceiver, type TraceReceiver } from '../../test/support/observe/trace-receiver.ts';
import type { Logger } from './log.ts';
import type { RequestDone } from './observer.ts';
import { fromStored, NO_SPAN, type Traced } from './trace-context.ts';
import { startTracing, type Tracing, type TracingSettings } from './tracing.ts';

interface Line {
  message: string;
  fields: Record<string, unknown>;
}

/** A log, and a function that waits for a line. */
function logOf(): { log: Logger; lines: Line[]; until(message: string): Promise<Line> } {
  const lines: Line[] = [];
  const looks = new Set<() => void>();
  const write = (fields: object, message: string) => {
    lines.push({ message, fields: fields as Line['fields'] });
    for (const look of looks) look();
  };
  const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
  const until = (message: string) =>
    new Promise<Line>((resolve) => {
      const look = () => {
        const found = lines.find((line) => line.message.startsWith(message));
        if (found !== undefined) resolve(found);
      };
      looks.add(look);
      look();
    });
  return { log, lines, until };
}

async function tracingTo(
  t: TestContext,
  url: string,
  changes: Partial<TracingSettings> = {},
): Promise<{ tracing: Tracing } & ReturnType<typeof logOf>> {
  const logged = logOf();
  const settings: TracingSettings = {
    url,
    headers: {},
    timeoutMs: 60_000,
    compression: 'none',
    share: 1,
    heedsParent: true,
    resource: { 'service.name': 'test' },
    delayMs: 5,
    maxSpans: 100,
    ...changes,
  };
  const tracing = await startTracing(settings, logged.log);
  t.after(() => tracing.stop());
  return { tracing, ...logged };
}

async function receiverOf(t: TestContext): Promise<TraceReceiver> {
  const receiver = await startTraceReceiver();
  t.after(() => receiver.stop());
  return receiver;
}

function request(traced: Traced, requestId = 'r'): RequestDone {
  return {
    requestId,
    method: 'GET',
    route: '/v1/me',
    status: 200,
    startedAt: 1_000.5,
    durationMs: 1.25,
    sentBytes: 0,
    teamId: null,
    keyId: null,
    errorCode: null,
    aborted: false,
    ...traced,
  };
}

test('counts spans that cannot be sent, and logs once when sending fails and once when it works again', async (t) => {
  const receiver = await receiverOf(t);
  const { tracing, lines, until } = await tracingTo(t, receiver.url);
  const end = () => tracing.observer.requestDone?.(request(tracing.arrive(undefined)));
  receiver.answer(400);
  end();
  const { fields } = await until('traces.not_sent');
  assert.equal(fields.url, receiver.url);
  assert.deepEqual(tracing.spans, { sent: 0, dropped: 1 });
  // Each span is sent in its own request, after the response to the previous one.
  for (let refused = receiver.bodies.length; refused < 4; refused++) {
    end();
    const wanted = refused + 1;
    await receiver.until(() => (receiver.bodies.length >= wanted ? true : undefined), 'another request');
  }
  receiver.answer(200);
  end();
  await until('traces.sent_again');
  await tracing.stop();
  assert.deepEqual(
    lines.map(({ message }) => message.split(':')[0]),
    ['traces.not_sent', 'traces.sent_again'],
  );
  assert.equal(tracing.spans.sent + tracing.spans.dropped, 5);
});

test('keeps a limited number of spans while a receiver hangs, and stops without waiting for it', async (t) => {
  const asked = Promise.withResolvers<ServerResponse>();
  const hanging = createServer((_, response) => asked.resolve(response));
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    hanging.closeAllConnections();
    hanging.close();
  });
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
  const { tracing, until } = await tracingTo(t, url, { maxSpans: 10 });
  const end = () => tracing.observer.requestDone?.(request(tracing.arrive(undefined)));
  for (let n = 0; n < 25; n++) end();
  assert.deepEqual(tracing.spans, { sent: 0, dropped: 15 });
  const response = await asked.promise;
  end();
  assert.deepEqual(tracing.spans, { sent: 0, dropped: 16 });
  await tracing.stop();
  assert.equal((await until('traces.dropped_at_stop')).fields.spans, 10);
  // Without a response the exporter would retry.
  response.writeHead(400).end();
});

test('sends waiting spans when it stops', async (t) => {
  const receiver = await receiverOf(t);
  const { tracing } = await tracingTo(t, receiver.url, { delayMs: 3_600_000 });
  const traced = tracing.arrive(undefined);
  tracing.observer.requestDone?.(request(traced));
  await tracing.stop();
  const [span] = receiver.spans;
  assert.deepEqual(
    [span?.traceId, span?.spanId, span?.parentSpanId, span?.startMs, span?.endMs],
    [traced.trace?.traceId, traced.trace?.spanId, '', 1_000, 1_001],
  );
});

test('samples the configured share of traces, and respects a caller’s decision only if configured', async (t) => {
  const receiver = await receiverOf(t);
  const isSampled = ({ trace }: Traced) => trace?.isSampled;
  const header = (flags: string) => `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-${flags}`;
  const none = await tracingTo(t, receiver.url, { share: 0 });
  assert.equal(isSampled(none.tracing.arrive(undefined)), false);
  assert.equal(isSampled(none.tracing.arrive(header('01'))), true);
  assert.equal(fromStored(none.tracing.begin())?.isSampled, false);
  const all = await tracingTo(t, receiver.url, { heedsParent: false });
  assert.equal(isSampled(all.tracing.arrive(header('00'))), true);
  const half = await tracingTo(t, receiver.url, { share: 0.5 });
  const kept = Array.from({ length: 2_000 }, () => isSampled(half.tracing.arrive(undefined)));
  const count = kept.filter(Boolean).length;
  assert.ok(count > 600 && count < 1_400, `${count} of 2,000`);
});

test('continues a stored trace, whose first span has no parent', async (t) => {
  const receiver = await receiverOf(t);
  const { tracing } = await tracingTo(t, receiver.url);
  const stored = tracing.begin();
  assert.equal(fromStored(stored)?.spanId, NO_SPAN);
  const first = tracing.under(stored);
  assert.equal(first.parent, null);
  assert.equal(first.trace?.traceId, fromStored(stored)?.traceId);
  assert.match(String(first.trace?.spanId), /^(?!0{16})[0-9a-f]{16}$/);
  const own = tracing.under(null);
  assert.equal(own.parent, null);
  assert.notEqual(own.trace?.traceId, first.trace?.traceId);
});
