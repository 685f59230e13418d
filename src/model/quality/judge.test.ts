/** What refuses a run, what only warns, and the sentences about it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPECT_NOTHING, type JobFinding, type Otherwise, type RecordsExpect } from './expect.ts';
import { type Expected, findingSentence, fittingFindings, judge, reasonSentence } from './judge.ts';
import { MOST_SET_ASIDE } from './quarantine.ts';

const finding = (changes: Partial<JobFinding> = {}): JobFinding => ({
  expectation: 'type',
  field: 'price',
  found: 'n/a',
  limit: 'number',
  count: 3,
  examples: ['7', '9'],
  drift: false,
  ...changes,
});

function judged(
  records: Partial<RecordsExpect>,
  { before, after }: { before: number; after: number },
  { otherwise = 'refuse', ...more }: Partial<Expected> & { otherwise?: Otherwise } = {},
) {
  const expect = { records: { ...EXPECT_NOTHING.records, ...records }, otherwise };
  return judge({ expect, ...more }, { mode: 'replace', before, after });
}

test('each expectation of the number of records has a sentence with the numbers', () => {
  const cases: [Partial<RecordsExpect>, before: number, after: number, Partial<Expected>, RegExp][] = [
    [{ min: 5 }, 0, 4, {}, /4 records, fewer than `expect\.records\.min` \(5\)/],
    [{ max: 5 }, 0, 6, {}, /6 records, more than `expect\.records\.max` \(5\)/],
    [{ drop: 20 }, 10, 7, {}, /7 records after a drop by 30 %, more than `expect\.records\.drop` \(20%\)/],
    [
      { rise: 200 },
      10,
      31,
      {},
      /31 records after a rise by 210 %, more than `expect\.records\.rise` \(200%\)/,
    ],
    [
      { duplicates: 5 },
      0,
      90,
      { emitted: 100, duplicates: 10 },
      /10 records \(10 %\) had an id that the run had already emitted, more than `expect\.records\.duplicates` \(5%\)/,
    ],
  ];
  for (const [records, before, after, more, sentence] of cases) {
    const { error, findings } = judged(records, { before, after }, more);
    assert.match(error ?? '', sentence);
    assert.match(
      error ?? '',
      /^Nothing was published: .*\. Check what the source returned, or change `expect`$/,
    );
    assert.equal(findings.length, 1);
  }
});

test('a bound itself meets the expectation', () => {
  const expected = { min: 8, max: 8, drop: 20, rise: 0, duplicates: 50 };
  const { error, findings } = judged(expected, { before: 10, after: 8 }, { emitted: 2, duplicates: 1 });
  assert.deepEqual([error, findings], [undefined, []]);
});

test('the first version has neither risen nor dropped', () => {
  assert.equal(judged({ drop: 0, rise: 0 }, { before: 0, after: 5 }).error, undefined);
});

test('`warn` publishes with findings, except an empty replacing run that nothing allows', () => {
  const warned = judged({ min: 5 }, { before: 9, after: 4 }, { otherwise: 'warn', findings: [finding()] });
  assert.equal(warned.error, undefined);
  assert.deepEqual(
    warned.findings.map(({ expectation }) => expectation),
    ['records.min', 'type'],
  );
  assert.match(
    judged({}, { before: 9, after: 0 }, { otherwise: 'warn' }).error ?? '',
    /records\.min.*default: 1/,
  );
  assert.equal(judged({ min: 0 }, { before: 9, after: 0 }, { otherwise: 'warn' }).error, undefined);
});

test('`quarantine` refuses for what the run as a whole does not meet, and if more than half is bad', () => {
  const otherwise = 'quarantine';
  const sizes = { before: 10, after: 10 };
  const some = { otherwise, findings: [finding()], emitted: 10, aside: { records: 5, bytes: 9 } } as const;
  assert.equal(judged({}, sizes, some).error, undefined);
  assert.match(
    judged({}, sizes, { ...some, aside: { records: 6, bytes: 9 } }).error ?? '',
    /6 records \(60 %\) do not meet an expectation of their fields, more than half; `price` of 3 records/,
  );
  const { records, bytes } = MOST_SET_ASIDE;
  const many = (aside: { records: number; bytes: number }) =>
    judged({}, sizes, { ...some, emitted: 9_999, aside }).error;
  assert.equal(many({ records, bytes }), undefined);
  assert.match(many({ records: records + 1, bytes: 9 }) ?? '', /1,001 records .*can set aside \(1000\)/);
  assert.match(many({ records: 9, bytes: bytes + 1 }) ?? '', /with more bytes/);
  const empty = finding({ expectation: 'filled', found: 50, limit: 98 });
  assert.match(judged({}, sizes, { otherwise, findings: [empty] }).error ?? '', /`price` is filled in 50 %/);
  assert.match(judged({ min: 11 }, sizes, { otherwise }).error ?? '', /fewer than/);
});

test('an error names five findings and counts the others', () => {
  const findings = Array.from({ length: 7 }, (_, n) => finding({ field: `f${n}` }));
  const { error } = judged({}, { before: 1, after: 1 }, { findings });
  assert.match(error ?? '', /`f0`.*`f4`.*; and 2 more\./);
  assert.doesNotMatch(error ?? '', /`f5`/);
});

test('findings of fields are sentences with an example', () => {
  const cases: [Partial<JobFinding>, string][] = [
    [{}, '`price` of 3 records is not of the type number, such as "n/a" of the record 7'],
    [
      { expectation: 'min', found: -5, limit: 0 },
      '`price` of 3 records is less than 0, such as -5 of the record 7',
    ],
    [
      { expectation: 'max', found: 'abc', limit: 2, count: 1 },
      '`price` of 1 record is more than 2, such as "abc" of the record 7',
    ],
    [
      { expectation: 'unique', found: 'x', limit: true },
      '`price` of 3 records has the value of another record, such as "x" of the record 7',
    ],
    [
      { expectation: 'oneOf', found: 'x', limit: '["a"]' },
      '`price` of 3 records is none of ["a"], such as "x" of the record 7',
    ],
    [
      { expectation: 'matches', found: 'x', limit: '^a' },
      '`price` of 3 records does not match ^a, such as "x" of the record 7',
    ],
    [
      { expectation: 'filled', found: 50, limit: 98 },
      '`price` is filled in 50 % of the records, less than `expect.fields.price.filled` (98%); it is empty in the records 7, 9',
    ],
  ];
  for (const [changes, sentence] of cases) assert.equal(findingSentence(finding(changes)), sentence);
});

test('names and ids from a source cannot look like lines of their own, or control a terminal', () => {
  const strange = { field: 'a\u001b[2Jb', examples: ['7\r\nBcc: x@example.com'] };
  assert.equal(
    findingSentence(finding({ expectation: 'max', found: 3, limit: 2, count: 1, ...strange })),
    '`a[2Jb` of 1 record is more than 2, such as 3 of the record 7 Bcc: x@example.com',
  );
  assert.equal(
    findingSentence(finding({ expectation: 'new', found: 3, limit: '', count: 1, drift: true, ...strange })),
    '`a[2Jb` is new: 1 record (3 %) has it',
  );
  assert.equal(
    reasonSentence({ expectation: 'max', field: 'a\nb', found: 3, limit: 2 }),
    '`a b` is more than 2: 3',
  );
});

test('only as many findings are listed as fit', () => {
  const one = Buffer.byteLength(JSON.stringify(finding())) + 1;
  const findings = [finding(), finding(), finding()];
  assert.deepEqual(fittingFindings(findings, 3 * one), { findings, truncated: false });
  assert.deepEqual(fittingFindings(findings, 2 * one), { findings: findings.slice(0, 2), truncated: true });
});
