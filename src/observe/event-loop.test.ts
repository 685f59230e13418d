/** Reports of the event loop delay. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLoopMonitor } from './process-metrics.ts';

test('reports what blocked the event loop', async () => {
  const monitor = new EventLoopMonitor();
  assert.deepEqual(monitor.read(), { p50Ms: 0, p99Ms: 0, maxMs: 0 });
  monitor.start();
  monitor.start();
  const deadline = performance.now() + 90_000;
  while (monitor.read().maxMs < 50 && performance.now() < deadline) {
    const until = performance.now() + 120;
    while (performance.now() < until);
    await new Promise((next) => setImmediate(next));
  }
  const { p50Ms, p99Ms, maxMs } = monitor.read();
  assert.ok(maxMs >= 50, `${maxMs}`);
  assert.ok(p50Ms <= p99Ms && p99Ms <= maxMs + 1, `${p50Ms} ${p99Ms} ${maxMs}`);
  monitor.stop();
  monitor.stop();
  assert.deepEqual(monitor.read(), { p50Ms: 0, p99Ms: 0, maxMs: 0 });
});
