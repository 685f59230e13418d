/** When schedules are due, including days of 23 or 25 hours and short months. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSchedule, nextRunAt, startsRun } from './schedule.ts';
import type { Schedule } from './workflow.ts';

/** The next `count` due times after a time, each computed from the previous one. */
function times(cron: string, timezone: string, after: string, count: number): string[] {
  let at: number | null = Date.parse(after);
  return Array.from({ length: count }, () => {
    at = nextRunAt({ cron, timezone, missed: 'run' }, at ?? 0);
    return new Date(at ?? 0).toISOString().replace(':00.000Z', 'Z');
  });
}

test('a time of day follows daylight saving time', () => {
  assert.deepEqual(times('0 6 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 1), ['2026-03-29T04:00Z']);
  assert.deepEqual(times('0 6 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', 1), ['2026-10-25T05:00Z']);
});

test('a time that is skipped in spring is due once that day, at the end of the gap', () => {
  assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', '2026-03-28T02:00Z', 2), [
    '2026-03-29T01:00Z',
    '2026-03-30T00:30Z',
  ]);
  assert.deepEqual(times('30 2 * * *', 'America/New_York', '2026-03-07T08:00Z', 2), [
    '2026-03-08T07:00Z',
    '2026-03-09T06:30Z',
  ]);
});

test('a time that occurs twice in autumn is due only the first time, from any starting point', () => {
  assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', '2026-10-24T02:00Z', 2), [
    '2026-10-25T00:30Z',
    '2026-10-26T01:30Z',
  ]);
  assert.deepEqual(times('30 1 * * *', 'America/New_York', '2026-10-31T08:00Z', 2), [
    '2026-11-01T05:30Z',
    '2026-11-02T06:30Z',
  ]);
  for (const late of ['2026-10-25T00:31Z', '2026-10-25T00:59Z', '2026-10-25T01:10Z', '2026-10-25T01:45Z']) {
    assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', late, 1), ['2026-10-26T01:30Z'], late);
  }
});

test('a half-hourly schedule stays half-hourly when clocks change', () => {
  assert.deepEqual(times('*/30 * * * *', 'Europe/Berlin', '2026-10-25T00:00Z', 4), [
    '2026-10-25T00:30Z',
    '2026-10-25T01:00Z',
    '2026-10-25T01:30Z',
    '2026-10-25T02:00Z',
  ]);
  assert.deepEqual(times('*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:00Z', 3), [
    '2026-03-29T00:30Z',
    '2026-03-29T01:00Z',
    '2026-03-29T01:30Z',
  ]);
});

test('skips months without a 31st and years without a February 29', () => {
  assert.deepEqual(times('0 0 31 * *', 'UTC', '2026-01-31T00:00Z', 3), [
    '2026-03-31T00:00Z',
    '2026-05-31T00:00Z',
    '2026-07-31T00:00Z',
  ]);
  assert.deepEqual(times('0 0 29 2 *', 'UTC', '2026-01-01T00:00Z', 2), [
    '2028-02-29T00:00Z',
    '2032-02-29T00:00Z',
  ]);
});

test('`every` is aligned to 1970 and always returns a later time', () => {
  const schedule: Schedule = { everyMs: 15 * 60_000, missed: 'run' };
  assert.equal(nextRunAt(schedule, Date.parse('2026-01-01T10:07Z')), Date.parse('2026-01-01T10:15Z'));
  assert.equal(nextRunAt(schedule, Date.parse('2026-01-01T10:15Z')), Date.parse('2026-01-01T10:30Z'));
});

test('missed runs start once, or are skipped if more than a minute late', () => {
  const starts = (schedule: Schedule, dueAt: string, now: string) =>
    startsRun(schedule, { dueAt: Date.parse(dueAt), nowMs: Date.parse(now) });
  const daily: Schedule = { cron: '0 6 * * *', timezone: 'UTC', missed: 'skip' };
  assert.equal(starts(daily, '2026-01-01T06:00Z', '2026-01-01T06:01Z'), true);
  assert.equal(starts(daily, '2026-01-01T06:00Z', '2026-01-01T06:02Z'), false);
  assert.equal(starts({ ...daily, missed: 'run' }, '2026-01-01T06:00Z', '2026-01-09T00:00Z'), true);
  // Six days were missed, but the latest run is not late.
  assert.equal(starts(daily, '2026-01-01T06:00Z', '2026-01-07T06:00:30Z'), true);
  assert.equal(starts(daily, '2026-01-01T06:00Z', '2026-01-07T05:59Z'), false);
  const often: Schedule = { everyMs: 60_000, missed: 'skip' };
  assert.equal(starts(often, '2026-01-01T06:00Z', '2026-01-07T05:59:59Z'), true);
});

test('explains why an expression is invalid or never matches', () => {
  const refused = [
    ['* * * * * *', 'UTC', /five fields.*seconds/],
    ['0 0 1 *', 'UTC', /five fields/],
    ['', 'UTC', /five fields/],
    ['2030-01-23T00:00:00', 'UTC', /five fields/],
    ['61 0 1 * *', 'UTC', /Invalid value for minute: 61/],
    ['a b c d e', 'UTC', /illegal characters/],
    ['@reboot', 'UTC', /not supported/],
    ['@every 5m', 'UTC', /cron expression/],
    ['0 0 30 2 *', 'UTC', /matches none/],
    ['0 0 1 * *', 'Mars/Base', /time zone such as.*"Mars\/Base"/],
    ['0 0 1 * *', '', /time zone/],
  ] as const;
  for (const [cron, timezone, sentence] of refused) {
    assert.match(checkSchedule(cron, timezone) ?? 'nothing', sentence, `${cron} ${timezone}`);
  }
  for (const cron of ['0 6 * * 1-5', '*/15 * * * *', '@daily', ' 0  0 L * * ', '0 0 * * FRI#2']) {
    assert.equal(checkSchedule(cron, 'Europe/Berlin'), undefined, cron);
  }
});
