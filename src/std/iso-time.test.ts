/** Which texts are accepted as times. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingDay, parseIsoTime } from './clock.ts';

test('a time needs a zone, and must exist', () => {
  const ten = Date.UTC(2026, 10, 20, 10);
  assert.equal(parseIsoTime('2026-11-20T10:00Z'), ten);
  assert.equal(parseIsoTime('2026-11-20T11:00:05.250+01:00'), ten + 5_250);
  assert.equal(parseIsoTime('2026-11-20'), ten - 36_000_000);
  for (const text of ['2026-11-20T10:00', '2026-13-01', '2026-11-20T25:00Z', 'yesterday', '1763632800', '']) {
    assert.equal(parseIsoTime(text), undefined);
  }
});

test('a day that its month does not have is no time, and is named', () => {
  for (const text of ['2026-02-30', '2026-02-29T10:00Z', '2026-04-31', '1900-02-29', '2026-11-00']) {
    assert.equal(parseIsoTime(text), undefined, text);
    assert.equal(missingDay(text), `: there is no day ${text.slice(0, 10)}`);
  }
  for (const text of ['2024-02-29', '2000-02-29T23:59:59Z', '2026-01-31']) {
    assert.equal(parseIsoTime(text), Date.parse(text));
    assert.equal(missingDay(text), '');
  }
  assert.equal(missingDay('next month'), '');
});
