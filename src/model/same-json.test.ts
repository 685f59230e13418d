/** When two JSON texts have the same value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseExactly } from '../std/exact-json.ts';
import { canonicalJson, sameJson } from './same-json.ts';

const LONG = '"digits":"1234567890123456"';

test('ignores the order of keys at any level, and how numbers and strings are written', () => {
  for (const [one, other] of [
    ['{"id":"1","a":{"x":1,"y":[{"p":1,"q":2}]}}', '{"a":{"y":[{"q":2,"p":1}],"x":1},"id":"1"}'],
    [`{${LONG},"n":1.0}`, `{${LONG},"n":1}`],
    [`{${LONG},"n":1e3}`, `{${LONG},"n":1000.00}`],
    ['{"n":1e+22}', '{"n":10000000000000000000000}'],
    ['{"n":0.1}', '{"n":0.1000000000000000000000}'],
    ['{"n":12e400}', '{"n":1.2E401}'],
    [`{${LONG},"n":-0.0}`, `{${LONG},"n":0}`],
    ['{"__proto__":{"a":1,"b":2}}', '{"__proto__":{"b":2,"a":1}}'],
  ] as const) {
    assert.equal(sameJson(one, other), true, `${one} ${other}`);
    assert.equal(sameJson(other, one), true, `${other} ${one}`);
    assert.equal(canonicalJson(parseExactly(one)), canonicalJson(parseExactly(other)));
  }
});

test('texts with any different value differ', () => {
  for (const [one, other] of [
    ['{"n":9007199254740993}', '{"n":9007199254740992}'],
    ['{"n":1}', '{"n":1.0000000000000001}'],
    ['{"n":1e400}', '{"n":1e401}'],
    ['{"n":1e9007199254740993}', '{"n":1e9007199254740992}'],
    [`{${LONG},"n":-1.0}`, `{${LONG},"n":1.0}`],
    ['{"n":1}', '{"n":"1"}'],
    ['{"n":0}', '{"n":null}'],
    ['[1,2]', '[2,1]'],
    ['[]', '{}'],
    ['{"a":1}', '{"b":1}'],
    ['{"a":{}}', '{"a":[]}'],
    ['{"toString":1}', '{"valueOf":1}'],
    ['{"a":"\\u00e9"}', '{"a":"e\\u0301"}'],
    ['{"a":"\\ud800"}', '{"a":"\\ud801"}'],
  ] as const) {
    assert.equal(sameJson(one, other), false, `${one} ${other}`);
    assert.equal(sameJson(other, one), false, `${other} ${one}`);
    assert.notEqual(canonicalJson(parseExactly(one)), canonicalJson(parseExactly(other)));
  }
});

test('a value equals itself with its keys in another order, and no other value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      assert.equal(sameJson(JSON.stringify(one), JSON.stringify(turned(one))), true);
      const isSame = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
      assert.equal(sameJson(JSON.stringify(one), JSON.stringify(other)), isSame);
      assert.equal(canonicalJson(one), canonicalJson(turned(one)));
      assert.equal(canonicalJson(one) === canonicalJson(other), isSame);
    }),
  );
});

const turned = (value: unknown) => rebuilt(value, (entries) => entries.reverse());
const sorted = (value: unknown) => rebuilt(value, (entries) => entries.sort(([a], [b]) => (a < b ? -1 : 1)));

/** The value with the keys of every object in another order, and without -0. */
function rebuilt(value: unknown, order: (entries: [string, unknown][]) => [string, unknown][]): unknown {
  if (Array.isArray(value)) return value.map((item) => rebuilt(item, order));
  if (typeof value !== 'object' || value === null) return value;
  const made: [string, unknown][] = Object.entries(value).map(([key, inner]) => [key, rebuilt(inner, order)]);
  return Object.fromEntries(order(made));
}
