/** Schedules in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDue, scheduleWords } from './schedule-words.ts';

const source = { type: 'http' } as const;

test('a schedule is told in words, with its zone', () => {
  const missed = 'run' as const;
  const cron = { cron: '0 2 * * *', timezone: 'Europe/Berlin', missed };
  assert.equal(scheduleWords({ source, schedule: cron }), 'cron 0 2 * * *, Europe/Berlin');
  assert.equal(scheduleWords({ source, schedule: { everyMs: 600_000, missed } }), 'every 10 min');
  assert.equal(scheduleWords({ source, schedule: null }), 'on demand');
  assert.equal(scheduleWords({ source: { type: 'push' }, schedule: null }), 'when pushed to');
});

test('a run is due once its time has passed', () => {
  const nowMs = Date.parse('2026-11-21T02:00:00.000Z');
  assert.equal(isDue('2026-11-21T02:00:01.000Z', nowMs), false);
  assert.equal(isDue('2026-11-21T01:59:00.000Z', nowMs), true);
  assert.equal(isDue(null, nowMs), false);
});
