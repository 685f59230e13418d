/** When digests end, including days of 23 or 25 hours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Digest, digestEnd, digestMistake, gather } from './digest.ts';

const HOUR_MS = 3_600_000;

/** The ends of digests that begin at these times. */
function ends(digest: Digest, ...from: string[]): string[] {
  return from.map((at) => new Date(digestEnd(digest, Date.parse(at))).toISOString().replace(':00.000Z', 'Z'));
}

const morning = { at: '08:00', timeZone: 'Europe/Zurich' };
const night = { at: '02:30', timeZone: 'Europe/Zurich' };

test('a digest of a period ends that long after it began', () => {
  assert.deepEqual(ends({ everyMs: HOUR_MS }, '2026-03-29T00:30Z'), ['2026-03-29T01:30Z']);
});

test('a digest of a time of day ends at the next such time, never at the time at which it begins', () => {
  assert.deepEqual(ends(morning, '2026-06-01T05:59Z', '2026-06-01T06:00Z'), [
    '2026-06-01T06:00Z',
    '2026-06-02T06:00Z',
  ]);
});

test('a time of day follows daylight saving time', () => {
  assert.deepEqual(ends(morning, '2026-03-28T12:00Z', '2026-10-24T12:00Z'), [
    '2026-03-29T06:00Z',
    '2026-10-25T07:00Z',
  ]);
});

test('a time of day that is skipped is at the end of the gap, and one that occurs twice is the first one', () => {
  assert.deepEqual(ends(night, '2026-03-28T12:00Z', '2026-03-29T01:00Z'), [
    '2026-03-29T01:00Z',
    '2026-03-30T00:30Z',
  ]);
  assert.deepEqual(
    ends(night, '2026-10-24T12:00Z', '2026-10-25T00:30Z', '2026-10-25T01:29Z', '2026-10-25T01:30Z'),
    ['2026-10-25T00:30Z', '2026-10-26T01:30Z', '2026-10-26T01:30Z', '2026-10-26T01:30Z'],
  );
});

test('in every hour of a year, in zones of all kinds, a digest ends within 25 hours at its time', () => {
  const zones = [
    'Europe/Zurich',
    'America/New_York',
    'Australia/Lord_Howe',
    'Africa/Cairo',
    'Asia/Kathmandu',
  ];
  for (const timeZone of zones) {
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' });
    for (const at of ['00:15', '02:15']) {
      let odd = 0;
      for (let from = Date.UTC(2026, 0, 1); from < Date.UTC(2027, 0, 1); from += 7 * HOUR_MS) {
        const end = digestEnd({ at, timeZone }, from);
        const tookMs = end - from;
        assert.ok(
          tookMs > 0 && tookMs <= 25 * HOUR_MS,
          `${timeZone} ${at} from ${new Date(from).toISOString()}`,
        );
        if (clock.format(end) !== at) odd += 1;
      }
      assert.ok(odd <= 4, `${timeZone} ${at}: only in the gap of one night, ${odd} times`);
    }
  }
});

test('a digest without a zone that this computer knows ends by UTC, and not never', () => {
  assert.deepEqual(ends({ at: '08:00', timeZone: 'Mars/Base' }, '2026-06-01T06:00Z'), ['2026-06-01T08:00Z']);
  assert.deepEqual(ends({ at: 'noon', timeZone: 'UTC' }, '2026-06-01T06:00Z'), ['2026-06-02T06:00Z']);
});

test('mistakes say what is allowed', () => {
  assert.equal(digestMistake(morning), undefined);
  assert.equal(digestMistake({ everyMs: 60_000 }), undefined);
  assert.match(digestMistake({ everyMs: 59_999 }) ?? '', /from "1m" to "7d"/);
  assert.match(digestMistake({ everyMs: Number.NaN }) ?? '', /from "1m" to "7d"/);
  assert.match(
    digestMistake({ at: '24:00', timeZone: 'UTC' }) ?? '',
    /from "00:00" to "23:59".*found "24:00"/,
  );
  assert.match(digestMistake({ at: '08:00', timeZone: 'Zurich' }) ?? '', /time zone/);
});

test('a record keeps its state before the first match, and its newest one', () => {
  const change = (before: string | null, after: string | null) => ({ id: 'a', before, after });
  assert.equal(gather(undefined, change(null, '1'), false), undefined);
  const first = gather(undefined, change('1', '2'), true);
  assert.deepEqual(first, { sent: '1', newest: '2', matches: 1 });
  assert.deepEqual(gather(first, change('2', '3'), false), { sent: '1', newest: '3', matches: 1 });
  assert.deepEqual(gather(first, change('2', null), true), { sent: '1', newest: null, matches: 2 });
});
