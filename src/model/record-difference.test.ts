/** Differences between records, field by field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences, MAX_DIFFERENCES_BYTES } from './same-json.ts';

test('differences name the fields that were added, changed and removed', () => {
  assert.deepEqual(
    differences([
      { id: '1', before: undefined, after: '{"id":"1"}' },
      { id: '2', before: '{"id":"2","a":1,"b":[1]}', after: '{"id":"2","b":[1],"c":3}' },
      { id: '3', before: '{"id":"3"}', after: undefined },
    ]),
    {
      differences: [
        { type: 'added', id: '1', fields: [{ key: 'id', value: '1' }] },
        {
          type: 'changed',
          id: '2',
          fields: [
            { key: 'a', previousValue: 1 },
            { key: 'c', value: 3 },
          ],
        },
        { type: 'removed', id: '3', fields: [{ key: 'id', previousValue: '3' }] },
      ],
      truncated: false,
    },
  );
});

test('the list is truncated before it outgrows the body of an event', () => {
  const records = Array.from({ length: 100 }, (_, i) => ({
    id: String(i),
    before: undefined,
    after: JSON.stringify({ id: String(i), text: 'x'.repeat(500) }),
  }));
  const found = differences(records);
  assert.equal(found.truncated, true);
  assert.ok(found.differences.length > 10);
  assert.ok(Buffer.byteLength(JSON.stringify(found.differences)) <= MAX_DIFFERENCES_BYTES);
});

test('lists a change in digits that a double would round away', () => {
  const { differences: list } = differences([
    { id: '1', before: '{"id":"1","n":9007199254740993123}', after: '{"id":"1","n":9007199254740993124}' },
  ]);
  assert.equal(
    JSON.stringify(list),
    '[{"type":"changed","id":"1","fields":[{"key":"n","value":9007199254740993124,"previousValue":9007199254740993123}]}]',
  );
});
