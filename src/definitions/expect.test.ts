/** `expect` of a definition: what it becomes, each mistake, and the `guards` of earlier versions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPECT_NO_FIELD, EXPECT_NOTHING, type Expect } from '../model/quality/expect.ts';
import { storedDefinition } from '../model/quality/guards.ts';
import { parseYamlDefinition } from './definition.ts';

const SOURCE = 'source: { type: command, command: ["true"] }\n';
const HTTP =
  'source: { type: http, url: https://example.org, follow: { url: $.url, fields: { size: $.size } } }\nfields: { id: $.id, email: $.mail }\n';

function parsed(text: string): Expect {
  const found = parseYamlDefinition(text, { file: 'acme/crm.yaml' });
  if ('mistakes' in found) throw new Error(found.mistakes.map(({ message }) => message).join('\n'));
  return found.definition.expect;
}

function mistakesOf(text: string): string[] {
  const found = parseYamlDefinition(text, { file: 'acme/crm.yaml' });
  if ('definition' in found) return [];
  return found.mistakes.map(({ line, message }) => `${line}: ${message}`);
}

test('expectations are read with percentages, durations and types', () => {
  const text = `${SOURCE}expect:
  records: { min: 100, max: 20000, drop: 20%, rise: 200 %, duplicates: 0.5% }
  fields:
    price: { type: number, min: 0, filled: 98% }
    address.city: { oneOf: [Berlin, 7, true], matches: '^B' }
    url: { type: url, unique: true }
    since: { type: date, min: "2020-02-29", max: "2026-01-31" }
  fresh: 26h
  otherwise: warn
`;
  assert.deepEqual(parsed(text), {
    records: { min: 100, max: 20_000, drop: 20, rise: 200, duplicates: 0.5 },
    fields: {
      price: { ...EXPECT_NO_FIELD, type: 'number', min: 0, filled: 98 },
      'address.city': { ...EXPECT_NO_FIELD, oneOf: ['Berlin', 7, true], matches: '^B' },
      url: { ...EXPECT_NO_FIELD, type: 'url', unique: true },
      since: { ...EXPECT_NO_FIELD, type: 'date', min: '2020-02-29', max: '2026-01-31' },
    },
    freshMs: 26 * 3_600_000,
    otherwise: 'warn',
  });
});

test('bounds that are numbers imply the type number', () => {
  const { price } = parsed(`${SOURCE}expect: { fields: { price: { min: 0 } } }`).fields;
  assert.equal(price?.type, 'number');
});

const MISTAKES: [text: string, ...mistakes: RegExp[]][] = [
  [`${SOURCE}expect: 5`, /^2: `expect` must be a map of settings such as \{ records: .* found the number 5$/],
  [
    `${SOURCE}expect: { record: {} }`,
    /^2: `expect\.record` is not a known setting. Did you mean `records`\?$/,
  ],
  [`${SOURCE}expect:\n  records: { minimum: 1 }`, /^3: `expect\.records\.minimum` is not a known setting/],
  [
    `${SOURCE}expect:\n  records: { min: -1, drop: 20, rise: 2x }`,
    /^3: `expect\.records\.min` must be a whole number from 0 to 1000000000, found the number -1$/,
    /^3: `expect\.records\.drop` must be a percentage such as 20%, from 0% to 100%, found the number 20\. Add `%`$/,
    /^3: `expect\.records\.rise` must be a percentage such as 20%, from 0% to 1000000%, found "2x"$/,
  ],
  [`${SOURCE}expect: { records: { drop: 101% } }`, /from 0% to 100%, found "101%"$/],
  [
    `${SOURCE}expect: { records: { min: 5, max: 4 } }`,
    /`expect\.records\.max` must not be less than `min` \(5\)$/,
  ],
  [
    `${SOURCE}expect: { fields: [price] }`,
    /`expect\.fields` must be a map such as \{ price: .* found a list of 1$/,
  ],
  [`${SOURCE}expect: { fields: { price: {} } }`, /`expect\.fields\.price` must have an expectation, such as/],
  [
    `${SOURCE}expect: { fields: { price: { typ: number } } }`,
    /`expect\.fields\.price\.typ` .*Did you mean `type`\?$/,
  ],
  [
    `${SOURCE}expect: { fields: { price: { type: integr } } }`,
    /must be text, number, .* found "integr"\. Did you mean `integer`\?$/,
  ],
  [
    `${SOURCE}expect: { fields: { price: { filled: 0.98 } } }`,
    /must be a percentage such as 20%, .*Write 98% or 0\.98%$/,
  ],
  [
    `${SOURCE}expect: { fields: { price: number } }`,
    /`expect\.fields\.price` must be a map .*found "number"$/,
  ],
  [
    `${SOURCE}expect: { fields: { a: { type: string }, b: { type: bool } } }`,
    /`expect\.fields\.a\.type` .*Did you mean `text`\?$/,
    /`expect\.fields\.b\.type` .*Did you mean `boolean`\?$/,
  ],
  [
    `${SOURCE}expect: { fields: { price: { type: number, oneOf: [1, "2"] } } }`,
    /`expect\.fields\.price\.oneOf\[1\]` must be of the `type` number, found "2"$/,
  ],
  [
    `${SOURCE}expect: { fields: { price: { type: number, min: "0", matches: x } } }`,
    /`expect\.fields\.price\.min` must be a number, found "0"\. Remove the quotes$/,
    /`expect\.fields\.price\.matches` is only for texts, and the `type` is number$/,
  ],
  [
    `${SOURCE}fresh: 26h\nrecords: { min: 1 }`,
    /^2: `fresh` belongs under `expect:`/,
    /^3: `records` belongs under `expect:`/,
  ],
  [
    `${SOURCE}expect: { fields: { done: { type: boolean, min: 1 } } }`,
    /`expect\.fields\.done\.min` needs a `type` with an order or a length: number,/,
  ],
  [
    `${SOURCE}expect: { fields: { day: { type: date, min: "2026-02-30" } } }`,
    /must be a date in quotes, such as "2026-01-31", found "2026-02-30"$/,
  ],
  [
    `${SOURCE}expect: { fields: { day: { type: date, min: "2026-02-02", max: "2026-01-01" } } }`,
    /`expect\.fields\.day\.max` must not be less/,
  ],
  [
    `${SOURCE}expect: { fields: { state: { oneOf: [] } } }`,
    /must be a list of 1 to 1000 strings, numbers or booleans such as/,
  ],
  [
    `${SOURCE}expect: { fields: { state: { oneOf: [a, {}] } } }`,
    /`expect\.fields\.state\.oneOf\[1\]` must be a string, number or boolean, found a map$/,
  ],
  [
    `${SOURCE}expect: { fields: { sku: { matches: "(" } } }`,
    /`expect\.fields\.sku\.matches` must be a regular expression of RE2\. The regular expression "\(" is invalid/,
  ],
  [
    `${SOURCE}expect: { fields: { sku: { matches: "[a-z]{500}" } } }`,
    /`expect\.fields\.sku\.matches` repeats too much/,
  ],
  [
    `${SOURCE}expect: { fields: { a..b: { filled: 1% } } }`,
    /must be the name of a field, or a path such as address\.city$/,
  ],
  [
    `${SOURCE}expect: { otherwise: quarantined }`,
    /`expect\.otherwise` must be refuse, warn or quarantine, found "quarantined"\. Did you mean `quarantine`\?$/,
  ],
  [`${SOURCE}expect: { fresh: 59s }`, /`expect\.fresh` must be a duration .* from 1m to 366d, found "59s"$/],
  [`${SOURCE}expect: { fresh: 26 hours }`, /found "26 hours"\. Write 26h$/],
  [`${SOURCE}keep: 500`, /`keep` must be a map of settings such as \{ versions: 500, days: 90 \}, found/],
  [`${SOURCE}keep: { days: 90d }`, /`keep\.days` must be a whole number .*found "90d"\. Write 90$/],
  [`${SOURCE}expect: { fresh: 26 }`, /`expect\.fresh` must be a duration .*Add a unit$/],
  [
    `${SOURCE}expect: {}\nguards: { minRecords: 1 }`,
    /^3: `guards` is the earlier form of `expect`\. Move its settings to `expect`, and remove it$/,
  ],
  [
    `${HTTP}expect: { fields: { emial: { filled: 1% } } }`,
    /`expect\.fields\.emial` is not one of the `fields`, so it would never be filled\. Did you mean `email`\?$/,
  ],
  [
    `${HTTP}expect: { fields: { born: { filled: 90% } } }`,
    /`expect\.fields\.born` is not one of the `fields`, .* Fields: id, email, size$/,
  ],
];

for (const [text, ...mistakes] of MISTAKES) {
  test(`reports ${mistakes[0]}`, () => {
    const found = mistakesOf(text);
    assert.equal(found.length, mistakes.length, found.join('\n'));
    for (const [at, mistake] of mistakes.entries()) assert.match(found[at] ?? '', mistake);
  });
}

test('an http source is expected to fill its own fields, those of detail pages, and the id', () => {
  const { fields } = parsed(
    `${HTTP}expect: { fields: { id: { unique: true }, size: { filled: 1% }, email.host: { filled: 1% } } }`,
  );
  assert.deepEqual(Object.keys(fields), ['id', 'size', 'email.host']);
});

test('guards of earlier files become expectations', () => {
  assert.deepEqual(parsed(`${SOURCE}guards: { minRecords: 3, maxDropPercent: 12.5 }`), {
    ...EXPECT_NOTHING,
    records: { ...EXPECT_NOTHING.records, min: 3, drop: 12.5 },
  });
  const filled = (percent: number) => ({ ...EXPECT_NO_FIELD, filled: percent });
  assert.deepEqual(parsed(`${HTTP}guards: { required: [email] }`).fields, { email: filled(100) });
  assert.deepEqual(parsed(`${HTTP}guards: { minFilledPercent: 90 }`).fields, {
    id: filled(90),
    email: filled(90),
    size: filled(90),
  });
});

test('a definition that an earlier version stored has its guards as expectations', () => {
  const stored = { mode: 'replace', source: { type: 'push' }, guards: { minRecords: 1, maxDropPercent: 50 } };
  assert.deepEqual(storedDefinition(JSON.stringify(stored)), {
    mode: 'replace',
    source: { type: 'push' },
    expect: { ...EXPECT_NOTHING, records: { ...EXPECT_NOTHING.records, drop: 50 } },
  });
  const source = { type: 'http', fields: { id: {}, name: {} }, follow: null };
  const guarded = {
    mode: 'upsert',
    source: { ...source, filled: { fields: null, minPercent: 90 } },
    guards: { minRecords: 2, maxDropPercent: null },
  };
  const read = storedDefinition(JSON.stringify(guarded));
  assert.deepEqual(read.source, source);
  assert.deepEqual(read.expect.records, { ...EXPECT_NOTHING.records, min: 2 });
  assert.deepEqual(Object.keys(read.expect.fields), ['id', 'name']);
});
