/** The types of values that expectations name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VALUE_TYPES, type ValueType } from './expect.ts';
import { compareDates, isOfType } from './value-types.ts';

const VALUES: [value: unknown, ...types: ValueType[]][] = [
  ['plain', 'text'],
  [1, 'number', 'integer'],
  [-2.5, 'number'],
  [JSON.rawJSON('12345678901234567890'), 'number', 'integer'],
  [JSON.rawJSON('1.00000000000000001'), 'number'],
  [true, 'boolean'],
  [[], 'list'],
  [{}, 'object'],
  ['https://example.org/a?b#c', 'text', 'url'],
  ['HTTP://localhost:80', 'text', 'url'],
  ['https://', 'text'],
  ['https://example.org/a b', 'text'],
  ['ftp://example.org', 'text'],
  ['ada@example.org', 'text', 'email'],
  ['ada@example', 'text'],
  ['@example.org', 'text'],
  [`${'a'.repeat(250)}@example.org`, 'text'],
  ['2024-02-29', 'text', 'date'],
  ['2023-02-29', 'text'],
  ['2023-04-31', 'text'],
  ['2023-13-01', 'text'],
  ['31.01.2026', 'text'],
  ['2026-01-31T12:00:00Z', 'text', 'datetime'],
  ['2026-01-31 12:00', 'text', 'datetime'],
  ['2026-01-31T12:00:00.123+0200', 'text', 'datetime'],
  ['2026-01-31T24:00:00Z', 'text'],
  ['2026-02-31T12:00:00Z', 'text'],
];

for (const [value, ...types] of VALUES) {
  test(`${JSON.stringify(value)} is ${types.join(' and ')}`, () => {
    assert.deepEqual(
      VALUE_TYPES.filter((type) => isOfType(value, type)),
      VALUE_TYPES.filter((type) => types.includes(type)),
    );
  });
}

test('times are compared as instants, and days as days', () => {
  const inOrder = [
    ['2025-12-31', '2026-01-01'],
    ['2026-01-31T12:00:00+02:00', '2026-01-31T11:00:00Z'],
    ['2026-01-31 10:00', '2026-01-31T13:00:00+0200'],
    ['2026-01-31T10:00:00,5Z', '2026-01-31T10:00:01Z'],
  ] as const;
  for (const [a, b] of inOrder) {
    assert.ok(compareDates(a, b) < 0, `${a} < ${b}`);
    assert.ok(compareDates(b, a) > 0, `${b} > ${a}`);
  }
  assert.equal(compareDates('2026-01-31T12:00+02', '2026-01-31T10:00:00Z'), 0);
});
