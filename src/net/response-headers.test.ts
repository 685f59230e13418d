/** `Retry-After` in every format of the standard, and in other formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { retryAfterMs } from './response-headers.ts';

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0);
const DAY_MS = 24 * 3_600_000;

for (const [what, header, expected] of [
  ['whole seconds', '120', 120_000],
  ['no wait', '0', 0],
  ['leading zeros', '0007', 7_000],
  ['spaces around', '  5 ', 5_000],
  ['a fraction, rounded up to a millisecond', '1.2345', 1_235],
  ['a huge number: at most a day', '99999999999999999999999', DAY_MS],
  ['two days: at most one', '172800', DAY_MS],
  ['a negative number', '-5', null],
  ['a sign', '+5', null],
  ['an exponent', '1e3', null],
  ['hexadecimal', '0x10', null],
  ['a unit', '5s', null],
  ['words', 'soon', null],
  ['nothing', '', null],
  ['no header', undefined, null],
  ['digits that are not ASCII', '٥', null],
  ['a list in one header', '5, 10', null],
  ['several headers: the longest counts', ['5', '30', '10'], 30_000],
  ['several headers, some unreadable', ['soon', '5'], 5_000],
  ['several headers, none readable', ['soon', '-1'], null],
  ['an IMF-fixdate', 'Thu, 01 Jan 2026 12:01:30 GMT', 90_000],
  ['a date of RFC 850', 'Thursday, 01-Jan-26 12:01:30 GMT', 90_000],
  ['a date as asctime writes it', 'Thu Jan  1 12:01:30 2026', 90_000],
  ['asctime with a day of two digits', 'Fri Jan 02 11:00:00 2026', 23 * 3_600_000],
  ['a date that is past', 'Thu, 01 Jan 2026 11:00:00 GMT', 0],
  ['a date long past', 'Sun, 06 Nov 1994 08:49:37 GMT', 0],
  ['a date of RFC 850 that is 32 years past', 'Sunday, 06-Nov-94 08:49:37 GMT', 0],
  ['a date of RFC 850 that is 50 years ahead', 'Wednesday, 01-Jan-76 00:00:00 GMT', DAY_MS],
  ['a date far ahead', 'Fri, 31 Dec 9999 23:59:59 GMT', DAY_MS],
  ['a leap second', 'Thu, 01 Jan 2026 12:01:60 GMT', 120_000],
  ['a wrong day of the week is not checked', 'Mon, 01 Jan 2026 12:01:30 GMT', 90_000],
  ['a day that does not exist', 'Thu, 30 Feb 2026 12:00:00 GMT', null],
  ['day 0', 'Thu, 00 Jan 2026 12:00:00 GMT', null],
  ['an hour that does not exist', 'Thu, 01 Jan 2026 24:00:00 GMT', null],
  ['another zone', 'Thu, 01 Jan 2026 12:01:30 CET', null],
  ['an offset', 'Thu, 01 Jan 2026 12:01:30 +0100', null],
  ['ISO 8601', '2026-01-01T12:01:30Z', null],
  ['lower case', 'thu, 01 jan 2026 12:01:30 gmt', null],
] as const) {
  test(`Retry-After: ${what}`, () => {
    assert.equal(retryAfterMs(typeof header === 'object' ? [...header] : header, NOW), expected);
  });
}

test('Retry-After: for any text, the wait is null or between 0 and 24 hours', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String)), (text) => {
      const wait = retryAfterMs(text, NOW);
      assert.ok(wait === null || (wait >= 0 && wait <= DAY_MS));
    }),
  );
});

test('Retry-After: parses every date in the standard format', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date(NOW), max: new Date(NOW + DAY_MS), noInvalidDate: true }), (date) => {
      const wholeMs = Math.floor(date.getTime() / 1_000) * 1_000;
      assert.equal(retryAfterMs(date.toUTCString(), NOW), wholeMs - NOW);
    }),
  );
});
