/** Ranges of versions in the address, and states of records. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stateOf } from './record-state.ts';
import {
  changesSearch,
  fromInput,
  namesFrom,
  namesIn,
  presets,
  singleVersion,
  spanOf,
  toInput,
} from './span.ts';

test('an address without a range means the newest version', () => {
  assert.deepEqual(spanOf({}, 17), { since: '16', until: '17' });
  assert.equal(singleVersion({}, 17), 17);
});

test('a range without an end extends to the newest version', () => {
  assert.deepEqual(spanOf({ since: '2026-11-17T00:00:00.000Z' }, 17), {
    since: '2026-11-17T00:00:00.000Z',
    until: '17',
  });
  assert.equal(singleVersion({ since: '3', version: '5' }, 17), undefined);
});

test('presets are the starts of the last eight days', () => {
  const days = presets(Date.parse('2026-11-24T10:00:00Z'), 'utc');
  assert.deepEqual(
    days.map(({ label }) => label),
    ['Today', 'Yesterday', 'Sunday', 'Saturday', 'Friday', 'Thursday', 'Wednesday', 'Tuesday'],
  );
  assert.equal(days.at(-1)?.since, '2026-11-17T00:00:00.000Z');
});

test('a time survives its input', () => {
  for (const zone of ['local', 'utc'] as const)
    assert.equal(fromInput(toInput('2026-11-17T08:30:00.000Z', zone), zone), '2026-11-17T08:30:00.000Z');
  assert.equal(toInput('17', 'utc'), '');
  assert.equal(fromInput('', 'utc'), undefined);
});

test('names with commas survive the address', () => {
  const names = ['a,b', 'price', '100%'];
  assert.deepEqual(namesFrom(namesIn(names)), names);
  assert.equal(
    changesSearch({ since: '1', until: '2' }, { type: 'changed', fields: ['a,b', 'c'] }),
    'since=1&until=2&type=changed&field=a%2Cb&field=c',
  );
});

test('the state of a record follows from its history', () => {
  const entry = { publishedAt: '', jobId: '' };
  const added = { ...entry, type: 'added' as const, version: 1, record: { id: '1', a: 1, b: 2 } };
  const changed = {
    ...entry,
    type: 'changed' as const,
    version: 2,
    fields: [
      { key: 'a', value: 5, previousValue: 1 },
      { key: 'b', previousValue: 2 },
    ],
  };
  assert.deepEqual(stateOf([changed, added]), { id: '1', a: 5 });
  assert.equal(stateOf([{ ...entry, type: 'removed', version: 3, fields: [] }, changed, added]), undefined);
  assert.equal(stateOf([changed]), undefined);
});
