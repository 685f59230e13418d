/** Counters, histograms, gauges, and sources that are read at a scrape. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metrics } from './metrics.ts';
import { workMetrics } from './work-metrics.ts';

const valuesOf = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

test('counts, measures, and reads gauges at a scrape', async () => {
  const metrics = new Metrics();
  const count = metrics.counter({ name: 'a_total', help: 'A.', labels: ['by'] });
  const observe = metrics.histogram({ name: 'b_seconds', help: 'B.', buckets: [1, 2] });
  let size: number | undefined;
  metrics.gauge({ name: 'c', help: 'C.', read: () => size });
  metrics.gauge({ name: 'd_total', help: 'D.', grows: true, read: () => 7 });
  count({ by: 'x' });
  count({ by: 'x' }, 2);
  observe()(1.5);
  const first = [
    'a_total{by="x"} 3',
    'b_seconds_bucket{le="1"} 0',
    'b_seconds_bucket{le="2"} 1',
    'b_seconds_bucket{le="+Inf"} 1',
    'b_seconds_sum 1.5',
    'b_seconds_count 1',
    'd_total 7',
  ];
  assert.deepEqual(valuesOf(await metrics.text()), first);
  size = 0;
  assert.deepEqual(valuesOf(await metrics.text()), [...first.slice(0, 6), 'c 0', 'd_total 7']);
});

test('reads a source once for concurrent scrapes, and not again while it is fresh', async () => {
  const metrics = new Metrics();
  let reads = 0;
  const latest = metrics.source({ keepMs: 3_600_000, withinMs: 60_000, read: async () => ++reads });
  metrics.gauge({ name: 'a', help: 'A.', read: latest });
  const texts = await Promise.all([metrics.text(), metrics.text()]);
  assert.deepEqual(texts.map(valuesOf), [['a 1'], ['a 1']]);
  assert.deepEqual(valuesOf(await metrics.text()), ['a 1']);
});

test('omits a value that could not be read in time until it is available', async () => {
  const metrics = new Metrics();
  const { promise, resolve } = Promise.withResolvers<number>();
  let reads = 0;
  const late = metrics.source({
    keepMs: 0,
    withinMs: 1,
    read: () => {
      reads += 1;
      return promise;
    },
  });
  const failing = metrics.source({ keepMs: 0, withinMs: 60_000, read: () => Promise.reject(new Error()) });
  metrics.gauge({ name: 'late', help: 'L.', read: late });
  metrics.gauge({ name: 'failing', help: 'F.', read: failing });
  assert.deepEqual(valuesOf(await metrics.text()), []);
  assert.deepEqual(valuesOf(await metrics.text()), []);
  assert.equal(reads, 1);
  resolve(5);
  // The source rests, because the read took long.
  assert.deepEqual(valuesOf(await metrics.text()), ['late 5']);
});

test('counts unknown methods and event types under one label', async () => {
  const metrics = new Metrics();
  const { requestDone, deliveryAttemptDone } = workMetrics(metrics, { eventTypes: ['known'], reasons: [] });
  const traced = { trace: null, parent: null };
  requestDone({
    ...traced,
    requestId: 'r',
    method: 'BREW',
    route: null,
    status: 404,
    startedAt: 0,
    durationMs: 1,
    sentBytes: 0,
    teamId: null,
    keyId: null,
    errorCode: null,
    aborted: false,
  });
  deliveryAttemptDone({
    ...traced,
    teamId: 't',
    webhookId: 'w',
    eventId: 'e',
    eventType: 'made up',
    deliveryId: 'd',
    attempt: 2,
    server: 'https://example.com',
    outcome: 'ok',
    status: 200,
    error: null,
    next: 'delivered',
    nextAt: null,
    circuit: null,
    restsUntil: null,
    startedAt: 0,
    durationMs: 1,
    waitedMs: 0,
  });
  const lines = valuesOf(await metrics.text()).filter(
    (line) => !/bucket|_sum/.test(line) && !/ 0$/.test(line),
  );
  assert.deepEqual(lines, [
    'http_server_request_duration_seconds_count{http_request_method="_OTHER",http_route="",http_response_status_code="404"} 1',
    'flowhook_delivery_attempts_total{outcome="ok",status_class="2xx"} 1',
    'flowhook_delivery_attempt_duration_seconds_count{outcome="ok"} 1',
    'flowhook_deliveries_total{state="delivered",event_type="other"} 1',
  ]);
});
