/** Which texts are accepted as times. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIsoTime } from './clock.ts';

test('a time needs a zone, and must exist', () => {
  const ten = Date.UTC(2026, 10, 20, 10);
  assert.equal(parseIsoTime('2026-11-20T10:00Z'), ten);
  assert.equal(parseIsoTime('2026-11-20T11:00:05.250+01:00'), ten + 5_250);
  assert.equal(parseIsoTime('2026-11-20'), ten - 36_000_000);
  for (const text of ['2026-11-20T10:00', '2026-13-01', '2026-11-20T25:00Z', 'yesterday', '1763632800', '']) {
    assert.equal(parseIsoTime(text), undefined);
  }
});
