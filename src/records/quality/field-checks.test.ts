/** Checks of fields in the walk of a run's records, also against a simple model with random records. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seeded } from '../../../test/support/seeded.ts';
import { patternOf } from '../../model/expressions/pattern.ts';
import {
  EXPECT_NO_FIELD,
  type FieldExpect,
  type JobFinding,
  VALUE_TYPES,
} from '../../model/quality/expect.ts';
import { reasonSentence } from '../../model/quality/judge.ts';
import { compareDates, isOfType } from '../../model/quality/value-types.ts';
import { type Broken, FieldChecks } from './field-checks.ts';
import { RunProfile } from './run-profile.ts';
import { Searches } from './searches.ts';
import { UniqueValues } from './unique-values.ts';

type Rec = Record<string, unknown>;
type Fields = Record<string, Partial<FieldExpect>>;

function run(fields: Fields, records: readonly Rec[]) {
  const checks = new FieldChecks(whole(fields));
  const profile = new RunProfile(checks.watches);
  const broken: ReturnType<typeof checks.endBatch> = [];
  for (let at = 0; at < records.length; at += 7) {
    const batch = records.slice(at, at + 7);
    for (const record of batch) {
      checks.begin(String(record.id));
      profile.add(record);
      checks.end();
    }
    const reasons = checks.endBatch();
    broken.push(...batch.map((_, place) => reasons[place]));
  }
  return { broken, findings: checks.findings(), profile: profile.result({ duplicates: 0 }) };
}

function whole(fields: Fields): Record<string, FieldExpect> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, expected]) => [name, { ...EXPECT_NO_FIELD, ...expected }]),
  );
}

const of = (findings: JobFinding[]) =>
  findings.map(({ expectation, field, found, count, examples }) => [
    expectation,
    field,
    found,
    count,
    examples,
  ]);

test('a finding has the first value, the number of records and the first five ids', () => {
  const records = Array.from({ length: 8 }, (_, n) => ({ id: `r${n}`, price: n < 2 ? n : `n/a ${n}` }));
  const { broken, findings } = run({ price: { type: 'number' } }, records);
  assert.deepEqual(of(findings), [['type', 'price', 'n/a 2', 6, ['r2', 'r3', 'r4', 'r5', 'r6']]]);
  assert.deepEqual(broken[0], undefined);
  assert.deepEqual(broken[3], [{ field: 'price', expectation: 'type', found: 'n/a 3', limit: 'number' }]);
});

test('a record has at most ten reasons, however many fields are wrong; the findings name all fields', () => {
  const names = Array.from({ length: 30 }, (_, n) => `f${n}`);
  const record = { id: 'a', ...Object.fromEntries(names.map((name) => [name, 'x'])) };
  const { broken, findings } = run(
    Object.fromEntries(names.map((name) => [name, { matches: `^${'y'.repeat(900)}` }])),
    [record],
  );
  assert.equal(broken[0]?.length, 10);
  assert.ok(String(broken[0]?.[0]?.limit).length <= 101);
  assert.equal(findings.length, 30);
});

test('the fields with `unique` share the values that a run keeps', () => {
  const names = ['a', 'b', 'c', 'd'];
  const checks = new FieldChecks(
    whole(Object.fromEntries(names.map((name) => [name, { unique: true }]))),
    40,
  );
  const profile = new RunProfile(checks.watches);
  for (let n = 0; n < 11; n += 1) {
    if (n === 9) assert.deepEqual(checks.notCompared, []);
    checks.begin(`r${n}`);
    profile.add({ id: `r${n}`, a: n, b: n, c: n, ...(n < 5 ? { d: n } : {}) });
    checks.end();
    checks.endBatch();
  }
  assert.deepEqual(checks.notCompared, ['a', 'b', 'c']);
});

test('missing, null and empty values are not filled, and only `filled` is about them', () => {
  const records = [{ id: 'a', mail: 'x' }, { id: 'b' }, { id: 'c', mail: null }, { id: 'd', mail: '' }];
  const { broken, findings } = run({ mail: { filled: 50, type: 'email', unique: true } }, records);
  assert.deepEqual(of(findings), [
    ['filled', 'mail', 25, 3, ['b', 'c', 'd']],
    ['type', 'mail', 'x', 1, ['a']],
  ]);
  assert.deepEqual(
    broken.slice(1),
    [undefined, undefined, undefined],
    'a single record cannot be less filled',
  );
  assert.deepEqual(run({ mail: { filled: 25 } }, records).findings, []);
  assert.deepEqual(run({ mail: { filled: 100 } }, []).findings, [], 'a run without records');
});

test('a field that no record has is not filled', () => {
  const { findings } = run({ 'shop.city': { filled: 1 } }, [
    { id: 'a', shop: { name: 'x' } },
    { id: 'b', shop: 5 },
  ]);
  assert.deepEqual(of(findings), [['filled', 'shop.city', 0, 2, ['a', 'b']]]);
});

test('a path reaches into objects, and a name with a point is a field too', () => {
  const records = [
    { id: 'a', shop: { city: 'Berlin' } },
    { id: 'b', 'shop.city': 'Rome' },
    { id: 'c', shop: { city: 7 } },
  ];
  const { findings } = run(
    { 'shop.city': { type: 'text', oneOf: ['Berlin', 'Rome'], filled: 100 } },
    records,
  );
  assert.deepEqual(of(findings), [
    ['type', 'shop.city', 7, 1, ['c']],
    ['oneOf', 'shop.city', 7, 1, ['c']],
  ]);
});

test('bounds are about values, lengths and times, and skip values of another type', () => {
  const found = (expected: Partial<FieldExpect>, ...values: unknown[]) =>
    of(
      run(
        { f: expected },
        values.map((f, n) => ({ id: String(n), f })),
      ).findings,
    ).map(([name, , value]) => [name, value]);
  assert.deepEqual(found({ type: 'number', min: 0, max: 9 }, -1, 0, 9, 10, '99'), [
    ['type', '99'],
    ['min', -1],
    ['max', 10],
  ]);
  assert.deepEqual(found({ type: 'integer', max: 9 }, JSON.rawJSON('12345678901234567890')), [
    ['max', '12345678901234567890'],
  ]);
  assert.deepEqual(found({ type: 'text', min: 2, max: 3 }, 'a', 'ab', 'abcd'), [
    ['min', 'a'],
    ['max', 'abcd'],
  ]);
  assert.deepEqual(found({ type: 'list', min: 1 }, [], [0]), [['min', '[]']]);
  assert.deepEqual(found({ type: 'date', min: '2026-01-01' }, '2025-12-31', '2026-01-01', '1.1.2020'), [
    ['type', '1.1.2020'],
    ['min', '2025-12-31'],
  ]);
  assert.deepEqual(
    found(
      { type: 'datetime', max: '2026-01-01T00:00:00Z' },
      '2026-01-01T01:00:00+02:00',
      '2026-01-01T03:00:00+02:00',
    ),
    [['max', '2026-01-01T03:00:00+02:00']],
  );
});

test('a pattern matches a part of a text, and texts are bounded', () => {
  const { findings } = run({ sku: { matches: '^A[0-9]+' } }, [
    { id: 'a', sku: 'A12-x' },
    { id: 'b', sku: 'xA12' },
    { id: 'c', sku: 12 },
    { id: 'd', sku: `A1${'1'.repeat(10_000)}` },
  ]);
  assert.deepEqual(of(findings), [
    ['matches', 'sku', 'xA12', 2, ['b', 'c']],
    ['notSearched', 'sku', `A1${'1'.repeat(98)}…`, 1, ['d']],
  ]);
});

test('large patterns take half a second of a run and 50 µs for each record, and texts beyond that are named', () => {
  let now = 0;
  const large = patternOf('a.{180}9');
  const searches = new Searches(() => (now += 50_000));
  const searched = (text: string) => searches.hasMatch(text, large);
  assert.deepEqual(
    Array.from({ length: 12 }, () => searched('ab')),
    [...Array(10).fill(false), undefined, undefined],
  );
  assert.equal(searches.hasMatch('ab', patternOf('^(ab)+$')), true, 'a small pattern');
  searches.beginRecord();
  assert.deepEqual([searched(`a${'b'.repeat(180)}9`), searched('ab')], [true, undefined]);

  const { broken, findings } = run({ text: { matches: '^a' } }, [{ id: 'a', text: 'a'.repeat(10_001) }]);
  assert.deepEqual(
    of(findings).map(([name]) => name),
    ['notSearched'],
  );
  assert.match(
    reasonSentence(broken[0]?.[0] as Broken),
    /^`text` has too many characters, or the patterns of the run have taken too long, to search it for \^a: "aaaa/,
  );
});

test('a value is unique if no other record has it', () => {
  const { findings } = run({ url: { unique: true } }, [
    { id: 'a', url: 'x' },
    { id: 'a', url: 'x' },
    { id: 'b', url: 'x' },
    { id: 'c', url: 1 },
    { id: 'd', url: '1' },
    { id: 'e', url: [1] },
    { id: 'f', url: [1] },
  ]);
  assert.deepEqual(of(findings), [['unique', 'url', 'x', 2, ['b', 'f']]]);
});

test('a long value is shortened, and stays valid Unicode', () => {
  const { findings } = run({ text: { type: 'number' } }, [{ id: 'a', text: `${'a'.repeat(99)}😀b` }]);
  assert.equal(findings[0]?.found, `${'a'.repeat(99)}\ufffd…`);
});

test('random records: findings and profile are those of a simple model', () => {
  const random = seeded(20_261_124);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const values = [
    0,
    1,
    -3,
    2.5,
    '',
    null,
    'a',
    'abc',
    'abcdef',
    '2026-01-31',
    '2025-06-01',
    'https://x.org/',
    'a@b.org',
    true,
    [],
    [1, 2],
    { a: 1 },
    '12',
  ];
  const types = [...VALUE_TYPES.filter((type) => type !== 'datetime'), null];
  for (let round = 0; round < 300; round += 1) {
    const fields = whole(
      Object.fromEntries(
        ['f', 'g', 'h.a'].map((name) => {
          const type = pick(types);
          const isDate = type === 'date';
          const isSized = type !== null && !['boolean', 'object', 'date'].includes(type);
          const expected: Partial<FieldExpect> = {
            type,
            min: random() < 0.5 ? null : isDate ? '2025-12-01' : isSized ? pick([0, 1, 2]) : null,
            max: random() < 0.5 ? null : isDate ? '2026-01-01' : isSized ? pick([2, 4]) : null,
            filled: random() < 0.5 ? null : pick([10, 50, 90]),
            unique: random() < 0.3,
            oneOf: random() < 0.3 ? ['a', 'abc', 1, true] : null,
            matches: random() < 0.3 ? pick(['^a', '[0-9]', 'org']) : null,
          };
          return [name, expected];
        }),
      ),
    );
    const records = Array.from({ length: Math.floor(random() * 40) }, () => {
      const record: Rec = { id: String(Math.floor(random() * 30)) };
      for (const name of ['f', 'g']) if (random() < 0.8) record[name] = pick(values);
      if (random() < 0.8) record.h = random() < 0.2 ? pick(values) : { a: pick(values) };
      return record;
    });
    const { findings, profile } = run(fields, records);
    assert.deepEqual(findings, modelOf(fields, records), `round ${round}`);
    assert.equal(profile.records, records.length);
    for (const name of ['f', 'g', 'h.a']) {
      const filled = records.filter((record) => isFilled(valueAt(record, name))).length;
      assert.equal(
        profile.fields.find((field) => field.name === name)?.filled ?? 0,
        filled,
        `round ${round} ${name}`,
      );
    }
  }
});

function valueAt(record: Rec, path: string): unknown {
  return path.split('.').reduce<unknown>((value, part) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Rec)[part] : undefined;
  }, record);
}

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** Reads all records again for each expectation, and keeps all values. */
function modelOf(fields: Record<string, FieldExpect>, records: readonly Rec[]): JobFinding[] {
  return Object.entries(fields).flatMap(([field, expected]) => {
    const all = records.map((record) => ({ id: String(record.id), value: valueAt(record, field) }));
    const some = all.filter(({ value }) => isFilled(value));
    const owners = new Map<string, string>();
    const finding = (expectation: string, limit: JobFinding['limit'], wrong: typeof some): JobFinding[] => {
      const [first] = wrong;
      if (first === undefined) return [];
      const { value } = first;
      const found = ['string', 'number', 'boolean'].includes(typeof value) ? value : JSON.stringify(value);
      const examples = wrong.slice(0, 5).map(({ id }) => id);
      return [
        { expectation, field, found: found as string, limit, count: wrong.length, examples, drift: false },
      ];
    };
    const isOther = ({ id, value }: (typeof some)[number]) => {
      const key = JSON.stringify(value);
      if (!owners.has(key)) owners.set(key, id);
      return owners.get(key) !== id;
    };
    const { type, min, max, oneOf, matches, unique, filled } = expected;
    const isPoor = filled !== null && some.length * 100 < filled * all.length;
    const differs = (value: unknown, bound: number | string): number => {
      if (type === null || !isOfType(value, type)) return 0;
      if (typeof bound === 'string') return compareDates(String(value), bound);
      if (type === 'number' || type === 'integer') return typeof value === 'number' ? value - bound : 0;
      if (type === 'list') return Array.isArray(value) ? value.length - bound : 0;
      return typeof value === 'string' ? value.length - bound : 0;
    };
    return [
      ...(isPoor
        ? finding(
            'filled',
            filled,
            all.filter(({ value }) => !isFilled(value)),
          ).map((one) => ({
            ...one,
            found: Math.floor((some.length * 1_000) / all.length) / 10,
          }))
        : []),
      ...(type === null
        ? []
        : finding(
            'type',
            type,
            some.filter(({ value }) => !isOfType(value, type)),
          )),
      ...(min === null
        ? []
        : finding(
            'min',
            min,
            some.filter(({ value }) => differs(value, min) < 0),
          )),
      ...(max === null
        ? []
        : finding(
            'max',
            max,
            some.filter(({ value }) => differs(value, max) > 0),
          )),
      ...(oneOf === null
        ? []
        : finding(
            'oneOf',
            JSON.stringify(oneOf),
            some.filter(({ value }) => !oneOf.includes(value as string)),
          )),
      ...(matches === null
        ? []
        : finding(
            'matches',
            matches,
            some.filter(({ value }) => typeof value !== 'string' || !new RegExp(matches).test(value)),
          )),
      ...(unique ? finding('unique', true, some.filter(isOther)) : []),
    ];
  });
}

test('a million unique values take at most 50 MB', () => {
  const values = new UniqueValues();
  const url = (n: number) => `https://example.org/people/${n}`;
  for (let from = 0; from < 1_000_000; from += 10_000) {
    for (let n = from; n < from + 10_000; n += 1) values.add(url(n), n);
    assert.deepEqual(values.repeated(), []);
  }
  assert.ok(values.bytes <= 50_000_000, `${values.bytes} bytes`);
  for (let n = 0; n < 1_000_000; n += 1_000) {
    values.add(url(n), -1);
    values.add(url(n), n);
    assert.deepEqual(values.repeated(), [0], url(n));
  }
});

test('beyond the limit, values are compared with the kept ones only', () => {
  const values = new UniqueValues(2);
  for (const [n, value] of ['a', 'b', 'c', 'c', 'a'].entries()) values.add(value, n);
  assert.deepEqual(values.repeated(), [4]);
  assert.ok(values.isFull);
});
