/** Definitions of `http` sources: their defaults, and each mistake with its line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYamlDefinition } from './definition.ts';

const SOURCE = 'source:\n  type: http\n  url: https://example.org/people\n';

function parse(text: string) {
  return parseYamlDefinition(text, { file: 'acme/one.yaml' });
}

test('a URL alone is a complete definition', () => {
  const parsed = parse(SOURCE);
  assert.ok('definition' in parsed);
  assert.deepEqual(parsed.definition.source, {
    type: 'http',
    urls: ['https://example.org/people'],
    method: 'GET',
    query: {},
    headers: {},
    body: null,
    auth: null,
    cookies: true,
    proxy: null,
    parse: null,
    charset: null,
    delimiter: null,
    records: null,
    fields: {},
    paginate: null,
    follow: null,
    remember: {},
    robots: null,
    perHost: 2,
    delayMs: 0,
    answerMs: null,
  });
});

test('a form or a body makes the method POST, and numbers in a query become strings', () => {
  const parsed = parse(`${SOURCE}  query: { limit: 200 }\n  body: { query: "{ people { id } }" }\n`);
  assert.ok('definition' in parsed && parsed.definition.source.type === 'http');
  assert.equal(parsed.definition.source.method, 'POST');
  assert.deepEqual(parsed.definition.source.query, { limit: '200' });
  assert.deepEqual(parsed.definition.source.body, { json: { query: '{ people { id } }' } });
});

const PLACE = (name: string) => `$\{${name}}`;

const CASES: [text: string, mistakes: RegExp[]][] = [
  [
    'source: { type: http }\n',
    [
      /^1: `source\.url` must be a URL such as "https:\/\/example\.com\/people", or a list of URLs, found nothing$/,
    ],
  ],
  ['source: { type: http, url: example.org }\n', [/^1: `source\.url` must be a URL that starts with/]],
  [
    'source: { type: http, url: "https://ada:pw@example.org" }\n',
    [/^1: `source\.url` must not contain a user name\. Write `auth/],
  ],
  [
    `source: { type: http, url: "https://${PLACE('state.host')}.example.org/" }\nmode: upsert\n`,
    [/^1: `source\.url` must have a fixed host/, /`source\.state` has no host/],
  ],
  [`${SOURCE}  auth: bearer\n`, [/^4: `source\.auth` must be a map such as \{ type: bearer, token/]],
  [
    `${SOURCE}  auth: { type: header, name: "X Key", value: abc }\n`,
    [/^4: `source\.auth\.name` is not a valid header name/],
  ],
  [`${SOURCE}  paginate: page\n`, [/^4: `source\.paginate` must be a map such as \{ type: page, param/]],
  [
    `${SOURCE}  state: { since: $.updated }\n`,
    [/^4: `source\.state\.since` must be a map such as \{ from: \$\.updated_at, take: max \}/],
  ],
  [`${SOURCE}  follow: a@href\n`, [/^4: `source\.follow` must be a map such as \{ url: "a@href"/]],
  [`${SOURCE}  method: post\n  body: x\n`, [/^4: `source\.method` must be GET, POST, PUT or PATCH/]],
  [`${SOURCE}  proxy: "http://"\n`, [/^4: `source\.proxy` must be a URL such as http:\/\/proxy/]],
  [
    `${SOURCE}  delay: 5m\n  query: [a]\n  method: post\n`,
    [/^4: `source\.delay`/, /^5: `source\.query`/, /^6: `source\.method`/],
  ],
  [`${SOURCE}fields: { id: "{{ $.id }" }\n`, [/^4: `fields\.id` has `\{\{` without a matching `\}\}`/]],
  [`${SOURCE}  heders: {}\n`, [/^4: `source\.heders` is not a known setting\. Did you mean `headers`\?/]],
  [`${SOURCE}  method: GET\n  body: x\n`, [/^4: `source\.method` must be POST, PUT or PATCH if there/]],
  [`${SOURCE}  headers: { Host: x }\n`, [/^4: `source\.headers\.Host` is set by Flowhook itself/]],
  [`${SOURCE}  headers: { a b: x }\n`, [/is not a valid header name/]],
  [
    `${SOURCE}  headers: { a: "${PLACE('SECRET.X')}" }\n`,
    [/^4: `source\.headers\.a` contains the unknown placeholder \$\{SECRET\.X\}/],
  ],
  [`${SOURCE}  auth: { type: baerer }\n`, [/^4: `source\.auth\.type` must be .* Did you mean `bearer`\?/]],
  [`${SOURCE}  auth: { type: bearer }\n`, [/^4: `source\.auth\.token` must be a string/]],
  [`${SOURCE}  parse: yaml\n`, [/^4: `source\.parse` must be json, ndjson, csv, html or xml/]],
  [`${SOURCE}  charset: utf-9\n`, [/^4: `source\.charset` must be a known character set/]],
  [`${SOURCE}  parse: csv\n  records: $.x\n`, [/^5: `source\.records` does not apply to csv: each row/]],
  [`${SOURCE}  records: "$.a["\n`, [/^4: `source\.records` is not a valid path: \$\.a\[ is not a JSONPath/]],
  [
    `${SOURCE}  parse: html\n  records: "tr:nth("\nfields: { id: "a@href" }\n`,
    [/^5: `source\.records` is not a valid path: tr:nth\( is not a CSS selector/],
  ],
  [`${SOURCE}  parse: html\n`, [/^1: `fields` is missing: html has no records of its own/]],
  [
    `${SOURCE}fields: { id: 7 }\n`,
    [/^4: `fields\.id` must be a map of settings, found the number 7/, /must be a path/],
  ],
  [
    `${SOURCE}fields: { id: { from: $.id, replace: "x" } }\n`,
    [/^4: `fields\.id\.replace` must be \[pattern/],
  ],
  [`${SOURCE}fields: { id: { from: $.id, replace: ["(", ""] } }\n`, [/is not a valid regular expression/]],
  [`${SOURCE}fields: { id: { from: $.id, date: x } }\n`, [/must be true, or a pattern such as DD\.MM\.YYYY/]],
  [`${SOURCE}fields: { id: { from: $.id, date: true, number: true } }\n`, [/must have only one of/]],
  [
    `${SOURCE}fields: { id: $.id }\nguards: { required: [id, emial] }\n`,
    [/^5: `guards\.required\[1\]` is not one of the `fields`, so it would never be filled\. Fields: id/],
  ],
  [`${SOURCE}guards: { required: [email] }\n`, [/^4: `guards\.required` requires `fields`/]],
  [`${SOURCE}  paginate: { type: cusror }\n`, [/^4: `source\.paginate\.type` .* Did you mean `cursor`\?/]],
  [
    `${SOURCE}  paginate: { type: cursor, from: $.next }\n`,
    [/^4: `source\.paginate\.param` must be a string/],
  ],
  [
    `${SOURCE}  paginate: { type: offset }\n`,
    [/`source\.paginate\.limit` is missing\. Set the number of records/],
  ],
  [`${SOURCE}  paginate: { type: until_empty }\n`, [/with type until_empty needs \$\{page\}/]],
  [`${SOURCE}  parse: csv\n  paginate: { type: next_link, from: $.next }\n`, [/cannot be next_link for csv/]],
  [
    `${SOURCE}  query: { since: "${PLACE('state.since')}" }\nmode: upsert\n`,
    [/uses \$\{state\.since\}, but `source\.state` has no since/],
  ],
  [
    `${SOURCE}  query: { since: "${PLACE('state.since')}" }\n  state: { since: { from: $.at } }\n`,
    [/`mode` must be upsert or append if requests use a state/],
  ],
  [`${SOURCE}  delay: 5m\n`, [/^4: `source\.delay` must be a duration .* at most 60s/]],
  [`${SOURCE}  follow: { url: $.url }\n`, [/^4: `source\.follow` has no `fields`/]],
];

for (const [text, mistakes] of CASES) {
  test(`reports the mistakes in ${JSON.stringify(text)}`, () => {
    const parsed = parse(text);
    const said =
      'mistakes' in parsed ? parsed.mistakes.map(({ line, message }) => `${line}: ${message}`) : [];
    assert.equal(said.length, mistakes.length, said.join('\n'));
    for (const [at, mistake] of mistakes.entries()) assert.match(said[at] ?? '', mistake);
  });
}
