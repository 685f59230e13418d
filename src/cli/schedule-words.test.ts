/** Schedules as people read them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cronWords, nextRunWords, scheduleWords } from './schedule-words.ts';

test('the usual forms of cron are said in words', () => {
  for (const [cron, words] of [
    ['0 6 * * 1-5', 'at 06:00 from Monday to Friday'],
    ['30 6,18 * * *', 'at 06:30 and 18:30'],
    ['*/15 * * * *', 'every 15 minutes'],
    ['* * * * *', 'every minute'],
    ['0 * * * *', 'every hour'],
    ['5 * * * *', 'every hour at 5 past'],
    ['0 */2 * * *', 'every 2 hours'],
    ['*/10 9-17 * * 1-5', 'every 10 minutes from 09:00 to 17:59 from Monday to Friday'],
    ['15 9-17 * * *', 'every hour at 15 past from 09:15 to 17:15'],
    ['0 0 1 * *', 'at 00:00 on the 1st of each month'],
    ['0 0 2,13,23 1,7 *', 'at 00:00 on the 2nd, 13th and 23rd in January and July'],
    ['0 8 * * 0,6', 'at 08:00 on Sunday and Saturday'],
    ['0 8 * * 7', 'at 08:00 on Sunday'],
    ['0 8 * 12 *', 'at 08:00 every day in December'],
  ] as const) {
    assert.equal(cronWords(cron), words, cron);
  }
});

test('what has no short words is left as it was written', () => {
  for (const cron of [
    '0 8 1 * 1',
    '0 8 * * MON',
    '7-9 * * * *',
    '0 0 0 * * *',
    '@daily',
    '0 8 L * *',
    '61 * * * *',
  ]) {
    assert.equal(cronWords(cron), undefined, cron);
  }
  const schedule = { cron: '0 8 L * *', timezone: 'UTC', missed: 'run' } as const;
  assert.equal(scheduleWords(schedule), 'cron 0 8 L * * (UTC)');
  assert.equal(scheduleWords({ everyMs: 90_000, missed: 'run' }), 'every 90 seconds');
  assert.equal(scheduleWords({ everyMs: 900_000, missed: 'skip' }), 'every 15 minutes');
});

test('the next run is told in the time zone of the schedule, with how long until then', () => {
  const schedule = { cron: '0 6 * * 1-5', timezone: 'Europe/Berlin', missed: 'run' } as const;
  const at = Date.parse('2026-11-23T05:00:00Z');
  const words = (minutes: number) => nextRunWords(schedule, at, at - minutes * 60_000);
  assert.equal(words(80), 'Mon 23 Nov 2026, 06:00 Europe/Berlin, in 1 h 20 min');
  assert.equal(words(2 * 24 * 60 + 480), 'Mon 23 Nov 2026, 06:00 Europe/Berlin, in 2 days 8 h');
  assert.equal(words(0), 'Mon 23 Nov 2026, 06:00 Europe/Berlin, due now');
  assert.equal(nextRunWords(schedule, null, at), 'never again');
});
