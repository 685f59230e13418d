/** What the profile of a run counts, and the limits of its size and memory. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  DISTINCT_ERROR,
  MAX_PROFILE_BYTES,
  MAX_PROFILE_FIELDS,
  VALUE_KINDS,
  type ValueKind,
} from '../../model/quality/profile.ts';
import { parseExactly } from '../../std/exact-json.ts';
import { RunProfile } from './run-profile.ts';

const profileOf = (records: readonly Record<string, unknown>[]) => {
  const profile = new RunProfile();
  for (const record of records) profile.add(record);
  return profile.result({ duplicates: 0 });
};
const fieldOf = (values: readonly unknown[]) => profileOf(values.map((value) => ({ value }))).fields[0];

describe('the profile of a run', () => {
  it('counts present and filled values, and ranges of numbers, lengths and days', () => {
    const profile = profileOf([
      { id: '1', price: 12.5, seen: '2026-11-24', note: '' },
      { id: '22', price: 3, seen: '2026-11-20T10:00:00Z', note: null },
      { id: '333', price: null, seen: 'soon' },
    ]);
    assert.deepEqual(profile, {
      records: 3,
      duplicates: 0,
      omitted: 0,
      fields: [
        { name: 'id', present: 3, filled: 3, kinds: { numeric: 3 }, distinct: 3, shortest: 1, longest: 3 },
        {
          name: 'price',
          present: 3,
          filled: 2,
          kinds: { number: 1, integer: 1 },
          distinct: 2,
          min: 3,
          max: 12.5,
        },
        {
          name: 'seen',
          present: 3,
          filled: 3,
          kinds: { text: 1, date: 1, datetime: 1 },
          distinct: 3,
          shortest: 4,
          longest: 20,
          earliest: '2026-11-20',
          latest: '2026-11-24',
        },
        { name: 'note', present: 2, filled: 0, kinds: {} },
      ],
    });
  });

  it('distinguishes kinds of values', () => {
    const examples: Record<(typeof VALUE_KINDS)[number], unknown[]> = {
      text: [
        ' ',
        'Ada',
        '2026-13-01',
        '2026-1-1',
        '2026-11-24x',
        '12.5 EUR',
        '1.2.3',
        '-',
        'h',
        'httpx://a',
        'http://',
        'http://a b',
        'a@b',
        'x@@y.z',
        '9'.repeat(3_000),
      ],
      number: [0.5, -1.25],
      integer: [0, 3, -7, 1e21],
      boolean: [true, false],
      list: [[], [1]],
      object: [{}, { a: 1 }],
      url: ['http://a', 'HTTPS://example.com/x?y=1'],
      email: ['ada@example.com'],
      date: ['2026-11-24', '0001-01-31'],
      datetime: ['2026-11-24T10:00', '2026-11-24 10:00:00+02:00', '2026-11-24T10:00:00.123Z'],
      numeric: ['12', '-12.50', '+.5', '1e5', '7.'],
    };
    for (const kind of VALUE_KINDS) {
      for (const value of examples[kind])
        assert.deepEqual(fieldOf([value])?.kinds, { [kind]: 1 }, String(value));
    }
  });

  it('counts numbers with more digits than a double', () => {
    const record = parseExactly('{"value":12345678901234567890}') as Record<string, unknown>;
    const [field] = profileOf([record]).fields;
    assert.deepEqual(field?.kinds, { integer: 1 });
    assert.equal(field?.max, 1.2345678901234567e19);
    assert.equal(fieldOf([JSON.rawJSON('1e999')])?.max, undefined);
  });

  it('counts the fields of nested objects, down to three levels', () => {
    const profile = profileOf([{ a: { b: { c: { d: 1 } } } }, { a: { b: { c: null } } }, { a: 'none' }]);
    assert.deepEqual(
      profile.fields.map(({ name, present, kinds }) => [name, present, kinds]),
      [
        ['a', 3, { object: 2, text: 1 }],
        ['a.b', 2, { object: 2 }],
        ['a.b.c', 2, { object: 1 }],
      ],
    );
  });

  it('counts fields in any order, with any name, and of the same path together', () => {
    const record = JSON.parse('{"__proto__":1,"a":{"b":1},"a.b":2,"constructor":3}');
    const profile = profileOf([record, { constructor: 4, a: { b: 5 } }, { b: 1, a: 2 }]);
    assert.deepEqual(
      profile.fields.map(({ name, present, max }) => [name, present, max]),
      [
        ['__proto__', 1, 1],
        ['a', 3, 2],
        ['a.b', 3, 5],
        ['constructor', 2, 4],
        ['b', 1, 1],
      ],
    );
  });

  it('lists a limited number of fields and bytes, and counts the others', () => {
    const wide = profileOf(
      Array.from({ length: 3 }, (_, row) =>
        Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`f${row % 2}_${at}`, 1])),
      ),
    );
    assert.equal(wide.fields.length, MAX_PROFILE_FIELDS);
    assert.equal(wide.omitted, 600 - MAX_PROFILE_FIELDS);
    const long = profileOf([
      Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${'\u0001'.repeat(240)}${at}`, 1])),
    ]);
    assert.ok(Buffer.byteLength(JSON.stringify(long)) <= MAX_PROFILE_BYTES);
    assert.equal(long.fields.length + long.omitted, 200);
    const endless = new RunProfile();
    for (let at = 0; at < 5_000; at += 1)
      endless.add({ [`${at}${'x'.repeat(at % 2 === 0 ? 1_000 : 1)}`]: 1 });
    assert.equal(endless.result({ duplicates: 0 }).omitted, 1_000);
  });

  it('shows filled values to watchers, also beyond the limit of fields', () => {
    const seen: unknown[] = [];
    const watch = (path: string) => (value: unknown, kind: ValueKind) => seen.push([path, value, kind]);
    const profile = new RunProfile(new Map(['f250', 'a.b.c.d', 'a.x'].map((path) => [path, watch(path)])));
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`f${at}`, at]));
    profile.add({ ...many, a: { x: '' } });
    profile.add({ a: { b: { c: { d: 'x' } } }, f250: null });
    assert.deepEqual(seen, [
      ['f250', 250, 'integer'],
      ['a.b.c.d', 'x', 'text'],
    ]);
    assert.equal(profile.filled('f250'), 1);
    assert.equal(profile.filled('a.b.c.d'), 1);
    assert.equal(profile.filled('none'), 0);
  });

  it('estimates the number of different values', () => {
    const values: Record<string, (at: number) => unknown> = {
      integers: (at) => at,
      fractions: (at) => at / 7,
      texts: (at) => `product ${at}`,
      urls: (at) => `https://shop.example/catalog/a-long-path/with/many/parts/item?id=${at}&ref=list`,
      ids: (at) => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
    };
    for (const [name, make] of Object.entries(values)) {
      const offs: number[] = [];
      for (const many of [1, 2, 10, 100, 500, 1_000, 3_000, 10_000, 100_000]) {
        const profile = new RunProfile();
        // Repetitions do not count.
        for (let at = 0; at < many * 2; at += 1) profile.add({ value: make(at % many) });
        const { distinct = 0 } = profile.result({ duplicates: 0 }).fields[0] ?? {};
        const off = (distinct - many) / many;
        offs.push(off);
        assert.ok(Math.abs(off) <= 3.5 * DISTINCT_ERROR, `${name}: ${distinct} instead of ${many}`);
        if (many <= 10) assert.equal(distinct, many, name);
      }
      assert.ok(Math.abs(offs.reduce((sum, off) => sum + off, 0) / offs.length) < DISTINCT_ERROR, name);
    }
  });
});
