/** Order and format of ids. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newId } from './id.ts';

test('ids are strictly increasing, even within one millisecond', () => {
  const ids = Array.from({ length: 20_000 }, () => newId('job', Date.now()));
  for (let i = 1; i < ids.length; i++)
    assert.ok((ids[i - 1] ?? '') < (ids[i] ?? ''), `${ids[i - 1]} < ${ids[i]}`);
});

test('ids are strictly increasing even if the clock is set back', () => {
  const nowMs = Date.now();
  assert.ok(newId('job', nowMs) < newId('job', nowMs - 600_000));
});

test('an id is its prefix and a UUIDv7 of the given time, in 26 characters', () => {
  const nowMs = Date.now() + 600_000;
  const id = newId('evt', nowMs);
  assert.match(id, /^evt_[0-9a-hjkmnp-tv-z]{26}$/);
  const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
  const bits = [...id.slice(4)].reduce((sum, letter) => sum * 32n + BigInt(alphabet.indexOf(letter)), 0n);
  const ms = Number(bits >> 80n);
  assert.equal(ms, nowMs);
  assert.equal((bits >> 76n) & 15n, 7n, 'version');
  assert.equal((bits >> 62n) & 3n, 2n, 'variant');
});
