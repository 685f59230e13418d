/** Random filters, compared with plain functions that say what they mean. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compile, type Names, verdict } from '../../src/model/expression.ts';
import { changedFields, changeOf, filter, type Seen } from '../support/rules/filters.ts';
import { item } from '../support/rules/histories.ts';

const state = fc.option(
  item.map((one) => JSON.parse(JSON.stringify(one))),
  { freq: 4 },
);
const seen: fc.Arbitrary<Seen> = fc
  .record({
    previous: state,
    record: state,
    workflowId: fc.constantFrom('w0', 'w1'),
    version: fc.constantFrom(1, 2, 3),
    added: fc.nat({ max: 3 }),
  })
  .map(({ previous, record, ...event }) => {
    const id = record?.id ?? previous?.id;
    const difference = id === undefined ? null : { id, previous, record };
    return { ...event, type: 'workflow_data_change', difference };
  });

test('2,000 random filters match what plain functions match, and report the same mistakes', () => {
  fc.assert(
    fc.property(
      filter,
      fc.array(seen, { minLength: 5, maxLength: 10 }),
      ({ cel, readsRecord, holds }, all) => {
        const expression = compile(cel);
        assert.equal(expression.readsRecord, readsRecord);
        for (const one of all) {
          const { matches, mistake } = verdict(expression, namesOf(one));
          const expected = holds(one);
          const about = `${cel} about ${JSON.stringify(one.difference)}: ${mistake}`;
          assert.equal(matches, expected === true, about);
          assert.equal(mistake !== null, expected === 'mistake', about);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

function namesOf({ type, workflowId, version, added, difference }: Seen): Names {
  const event = {
    id: 'evt_1',
    type,
    workflowId,
    jobId: null,
    timestamp: '2026-01-01T00:00:00Z',
    sequence: 1,
  };
  const data = { version, records: { added } };
  if (difference === null) {
    return { event, data, change: null, id: null, record: null, previous: null, changed: [] };
  }
  return { event, data, change: changeOf(difference), ...difference, changed: changedFields(difference) };
}
