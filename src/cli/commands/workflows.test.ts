/** Descriptions of schedules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextRunWords, scheduleWords } from './workflows.ts';

test('an interval is shown in its largest unit, and a cron expression unchanged', () => {
  assert.equal(scheduleWords({ cron: '0 8 L * *', timezone: 'UTC', missed: 'run' }), 'cron 0 8 L * * (UTC)');
  assert.equal(scheduleWords({ everyMs: 90_000, missed: 'run' }), 'every 90 seconds');
  assert.equal(scheduleWords({ everyMs: 900_000, missed: 'skip' }), 'every 15 minutes');
  assert.equal(scheduleWords({ everyMs: 3_600_000, missed: 'skip' }), 'every hour');
});

test('the next run is shown in the time zone of the schedule, with the time until then', () => {
  const schedule = { cron: '0 6 * * 1-5', timezone: 'Europe/Berlin', missed: 'run' } as const;
  const at = Date.parse('2026-11-23T05:00:00Z');
  const words = (minutes: number) => nextRunWords(schedule, at, at - minutes * 60_000);
  assert.equal(words(80), 'Mon 23 Nov 2026, 06:00 Europe/Berlin, in 1 h 20 min');
  assert.equal(words(2 * 24 * 60 + 480), 'Mon 23 Nov 2026, 06:00 Europe/Berlin, in 2 days 8 h');
  assert.equal(words(0), 'Mon 23 Nov 2026, 06:00 Europe/Berlin, due now');
  assert.equal(nextRunWords(schedule, null, at), 'never again');
});
