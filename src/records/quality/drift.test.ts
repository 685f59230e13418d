/** Planted changes, each reported once. What is not reported: test/quality/noise.test.ts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Judge } from '../../../test/support/quality/judge.ts';
import { COMPARED_PROFILES, driftSentence } from '../../model/quality/drift.ts';

/** 200 products: complete, except that 2 % have no price. */
const products = (change: (record: Record<string, unknown>, at: number) => object = (record) => record) =>
  Array.from({ length: 200 }, (_, at) =>
    change(
      {
        id: String(at),
        price: at % 50 === 0 ? null : at + 0.5,
        seen: '2026-11-24',
        url: 'https://shop.example/',
        address: { city: 'Berlin', zip: '10115' },
      },
      at,
    ),
  ) as Record<string, unknown>[];

const PLANTED: { what: string; records: Record<string, unknown>[]; sentences: string[] }[] = [
  {
    what: 'half of the prices are empty',
    records: products((record, at) => (at % 2 === 0 ? { ...record, price: '' } : record)),
    sentences: ['`price` is filled in 50 % of the records, usually in 98 %'],
  },
  {
    what: 'prices become texts',
    records: products((record) => ({ ...record, price: `EUR ${record.price}` })),
    sentences: ['`price` has a new type: text in 200 records, usually number'],
  },
  {
    what: 'some days become times, and some URLs other texts',
    records: products((record, at) =>
      at % 10 === 0 ? { ...record, seen: '2026-11-24T10:00:00Z', url: 'n/a' } : record,
    ),
    sentences: [
      '`seen` has a new type: datetime in 20 records, usually date',
      '`url` has a new type: text in 20 records, usually url',
    ],
  },
  {
    what: 'an object with two fields is gone, and a field is new',
    records: products(({ address: _, ...record }, at) =>
      at % 4 === 0 ? { ...record, discount: 1 } : record,
    ),
    sentences: [
      '`discount` is new: 50 records (25 %) have it',
      '`address` has vanished: no record has it, usually 100 % have it',
    ],
  },
  {
    what: 'a field of an object is renamed',
    records: products((record) => ({ ...record, address: { town: 'Berlin', zip: '10115' } })),
    sentences: [
      '`address.town` is new: 200 records (100 %) have it',
      '`address.city` has vanished: no record has it, usually 100 % have it',
    ],
  },
  {
    what: 'a page lists 3 of 200 records',
    records: products().slice(0, 3),
    sentences: ['the run has 3 records, usually 200'],
  },
  {
    what: 'a page is listed twice',
    records: products((record, at) => ({ ...record, id: String(at < 100 ? at : at - 50) })),
    sentences: ['50 records (25 %) repeat an id, usually 0 %'],
  },
];

describe('drift is reported once', () => {
  for (const { what, records, sentences } of PLANTED) {
    it(`when ${what}`, () => {
      const judge = new Judge();
      for (let version = 1; version <= COMPARED_PROFILES; version += 1)
        assert.deepEqual(judge.add(products()), []);
      assert.deepEqual(judge.add(records).map(driftSentence), sentences);
      assert.deepEqual(judge.add(records), []);
    });
  }

  it('from the sixth version on, and not of fewer than 20 records', () => {
    const judge = new Judge();
    const changed = products((record) => ({ ...record, price: 'x' }));
    for (let version = 1; version <= 4; version += 1) judge.add(products());
    assert.deepEqual(judge.add(changed), []);
    const other = products((record) => ({ ...record, price: true }));
    assert.deepEqual(
      judge.add(other).map(({ expectation }) => expectation),
      ['type'],
    );
    const few = new Judge('upsert');
    for (let version = 1; version <= 9; version += 1) few.add(products());
    assert.deepEqual(few.add(changed.slice(0, 19)), []);
    assert.deepEqual(
      few.add(changed.slice(0, 20)).map(({ expectation }) => expectation),
      ['type'],
    );
  });

  it('except the number of records of runs that emit changes', () => {
    const judge = new Judge('append');
    for (let version = 1; version <= 9; version += 1) judge.add(products());
    assert.deepEqual(judge.add(products().slice(0, 30)), []);
  });
});
