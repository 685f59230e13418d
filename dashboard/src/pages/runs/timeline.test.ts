/** The timeline of a run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Delivery, FlowhookEvent, Job } from '../../../../client/src/flowhook-client.ts';
import { placeOf } from '../../parts/format.ts';
import { axisOf, barsOf } from './timeline.ts';

const job = {
  state: 'finished',
  attempt: 1,
  reason: null,
  queuedAt: '2026-01-01T00:00:00.000Z',
  startedAt: '2026-01-01T00:00:01.000Z',
  finishedAt: '2026-01-01T00:00:03.000Z',
} as Job;
const event = { id: 'evt_1', type: 'workflow_finished' } as FlowhookEvent;
const at = (time: string) => Date.parse(`2026-01-01T00:00:${time}Z`);

function delivery(changes: Partial<Delivery>): Delivery {
  return {
    id: 'dlv_1',
    createdAt: job.finishedAt,
    state: 'delivered',
    lastAttempt: null,
    ...changes,
  } as Delivery;
}

test('shows the time in the queue, the run and its deliveries', () => {
  const sent = delivery({ lastAttempt: { at: '2026-01-01T00:00:04.000Z', message: 'Delivered' } as never });
  const bars = barsOf(job, [event], new Map([['evt_1', [sent]]]));
  assert.deepEqual(
    bars.map(({ label, state, fromMs, toMs }) => [label, state, fromMs, toMs]),
    [
      ['In the queue', 'queued', at('00'), at('01')],
      ['Run', 'finished', at('01'), at('03')],
      ['workflow_finished', 'delivered', at('03'), at('04')],
    ],
  );
  assert.deepEqual(placeOf(bars[1] as never, axisOf(bars, at('59'))), { left: 25, width: 50 });
});

test('extends a running bar to the current time, and keeps short bars visible', () => {
  const running = { ...job, state: 'running', finishedAt: null } as Job;
  const bars = barsOf(running, [], new Map());
  const axis = axisOf(bars, at('11'));
  assert.equal(axis.toMs, at('11'));
  assert.equal(bars[1]?.state, 'running');
  const { left, width } = placeOf({ fromMs: at('11'), toMs: at('11') }, axis);
  assert.ok(width > 0 && left + width <= 100);
});

test('keeps the run visible beside a delivery that waits for days', () => {
  const bars = barsOf(job, [event], new Map([['evt_1', [delivery({ state: 'waiting' })]]]));
  const nowMs = at('03') + 86_400_000;
  const axis = axisOf(bars, nowMs);
  assert.deepEqual(axis, { fromMs: at('00'), toMs: at('06') });
  assert.deepEqual(placeOf({ fromMs: at('03'), toMs: nowMs }, axis), { left: 50, width: 50 });
});

test('shows only the time in the queue of a run that was canceled before it started', () => {
  const canceled = { ...job, state: 'canceled', startedAt: null } as Job;
  assert.deepEqual(
    barsOf(canceled, [], new Map()).map(({ label, toMs }) => [label, toMs]),
    [['In the queue', at('03')]],
  );
});
