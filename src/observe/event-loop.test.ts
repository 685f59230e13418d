/** Reports of the event loop delay, and how often measuring it wakes the process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLoopMonitor } from './event-loop.ts';

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

/**
 * A monitor on a clock that the test moves. `busy` is the time that the event loop was busy before a tick, in `turns`
 * turns.
 */
function measured() {
  let nowMs = 0;
  let busyMs = 0;
  let made = 0;
  const monitor = new EventLoopMonitor({ elapsed: () => nowMs, busyMs: () => busyMs, turns: () => made });
  monitor.start();
  const tick = ({ afterMs, busy, turns = 1 }: { afterMs: number; busy: number; turns?: number }) => {
    nowMs += afterMs;
    busyMs += busy;
    made += turns;
    return monitor.tick();
  };
  return { monitor, tick };
}

test('wakes an idle process four times per second, and a busy one 50 times', (t) => {
  const { monitor, tick } = measured();
  t.after(() => monitor.stop());
  for (let second = 0; second < 60; second += 1) {
    for (let n = 0; n < 4; n += 1) assert.equal(tick({ afterMs: 250, busy: 5 }), 250);
  }
  assert.deepEqual(monitor.read(), { p50Ms: 0, p99Ms: 0, maxMs: 0 });
  assert.equal(tick({ afterMs: 250, busy: 20 }), 20);
  for (let n = 0; n < 50; n += 1) assert.equal(tick({ afterMs: 20, busy: 10 }), 20);
  // 250 ms later, the event loop was idle for long enough.
  const intervals = Array.from({ length: 26 }, () => tick({ afterMs: 20, busy: 0 }));
  assert.equal(intervals.at(-1), 250);
});

test('reports how long the event loop was busy at rest, and how late ticks are otherwise', (t) => {
  const { monitor, tick } = measured();
  t.after(() => monitor.stop());
  tick({ afterMs: 250, busy: 1 });
  tick({ afterMs: 400, busy: 300 });
  assert.equal(Math.round(monitor.read().maxMs), 300);
  tick({ afterMs: 520, busy: 519 });
  assert.equal(Math.round(monitor.read().maxMs), 500);
});

test('at rest, does not report the sum of many short callbacks as one delay', (t) => {
  const { monitor, tick } = measured();
  t.after(() => monitor.stop());
  assert.equal(tick({ afterMs: 252, busy: 100, turns: 100 }), 20);
  assert.equal(Math.round(monitor.read().maxMs), 2);
  tick({ afterMs: 22, busy: 20, turns: 20 });
  assert.equal(Math.round(monitor.read().maxMs), 2);
});

test('counts the time at rest as time without delay', (t) => {
  const { monitor, tick } = measured();
  t.after(() => monitor.stop());
  // 4 s at rest count as 200 ticks. One more tick is half a percent of them.
  for (let n = 0; n < 16; n += 1) tick({ afterMs: 250, busy: 0 });
  tick({ afterMs: 250, busy: 100 });
  assert.deepEqual(monitor.read().p99Ms, 0);
  for (let n = 0; n < 5; n += 1) tick({ afterMs: 60, busy: 60 });
  const { p50Ms, p99Ms } = monitor.read();
  assert.equal(p50Ms, 0);
  assert.ok(p99Ms >= 39 && p99Ms <= 41, `${p99Ms}`);
});

test('reports the last full minute', (t) => {
  const { monitor, tick } = measured();
  t.after(() => monitor.stop());
  const calmMinute = () => {
    for (let n = 0; n < 240; n += 1) tick({ afterMs: 250, busy: 0 });
  };
  tick({ afterMs: 250, busy: 100 });
  tick({ afterMs: 270, busy: 0 });
  calmMinute();
  assert.ok(monitor.read().maxMs >= 100);
  calmMinute();
  assert.equal(monitor.read().maxMs, 0);
});
