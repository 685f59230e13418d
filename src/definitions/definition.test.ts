/** Definitions: their defaults, and each possible mistake with its line and message. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of definitions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPECT_NOTHING } from '../model/quality/expect.ts';
import { parseDefinition, parseModuleDefinition, parseYamlDefinition } from './definition.ts';

const SOURCE = 'source: { type: command, command: ["true"] }\n';

function mistakesOf(text: string): string[] {
  const parsed = parseYamlDefinition(text, { file: 'acme/crm.yaml' });
  if ('definition' in parsed) return [];
  return parsed.mistakes.map(({ line, message }) => `${line}: ${message}`);
}

test('the shortest definition gets all defaults', () => {
  const parsed = parseYamlDefinition(SOURCE, { file: 'acme/crm contacts.yaml' });
  assert.deepEqual(parsed, {
    definition: {
      name: 'crm contacts',
      source: {
        type: 'command',
        command: ['true'],
        protocol: 'ndjson',
        streams: null,
        env: {},
        config: null,
        directory: 'acme',
      },
      key: [],
      mode: 'replace',
      onInvalid: 'fail',
      overlap: 'reject',
      schedule: null,
      priority: 0,
      expect: EXPECT_NOTHING,
      limits: {
        timeoutMs: 900_000,
        records: 5_000_000,
        memoryBytes: 512_000_000,
        outputBytes: 2_000_000_000,
      },
      retries: { max: 2, backoffMs: 5_000 },
    },
  });
});

test('every setting is read', () => {
  const text = `
name: CRM contacts
source:
  type: command
  command: [tap, --all, --config, "\${config}", "--state=\${state}"]
  protocol: ndjson
  env: { TOKEN: "Bearer \${secret.CRM_TOKEN}", PLAIN: "\${HOME} and $x" }
  config: { url: https://example.org, pages: [1, 2], auth: { token: "\${secret.CRM_TOKEN}" } }
key: [account, id]
mode: upsert
onInvalid: skip
overlap: buffer
schedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin, missed: skip }
priority: -100
keep: { versions: 500, days: 90 }
compare: text
expect: { records: { min: 3, drop: 12.5% } }
limits: { timeout: 90s, records: 10, memory: 1.5 GiB, output: 500MB }
retries: { max: 0, backoff: 250ms }
`;
  assert.deepEqual(parseYamlDefinition(text, { file: 'acme/crm.yaml' }), {
    definition: {
      name: 'CRM contacts',
      source: {
        type: 'command',
        command: ['tap', '--all', '--config', `\${config}`, `--state=\${state}`],
        protocol: 'ndjson',
        streams: null,
        env: { TOKEN: `Bearer \${secret.CRM_TOKEN}`, PLAIN: `\${HOME} and $x` },
        config: { url: 'https://example.org', pages: [1, 2], auth: { token: `\${secret.CRM_TOKEN}` } },
        directory: 'acme',
      },
      key: ['account', 'id'],
      mode: 'upsert',
      onInvalid: 'skip',
      overlap: 'buffer',
      schedule: { cron: '0 6 * * 1-5', timezone: 'Europe/Berlin', missed: 'skip' },
      priority: -100,
      keep: { versions: 500, days: 90 },
      compare: 'text',
      expect: { ...EXPECT_NOTHING, records: { ...EXPECT_NOTHING.records, min: 3, drop: 12.5 } },
      limits: { timeoutMs: 90_000, records: 10, memoryBytes: 1.5 * 2 ** 30, outputBytes: 500_000_000 },
      retries: { max: 0, backoffMs: 250 },
    },
  });
});

const MISPLACED = 'is not allowed here: only http sources have `fields`. Remove it';
const SETTINGS =
  'name, key, mode, onInvalid, overlap, schedule, priority, expect, guards, limits, retries, keep, compare, source';

const CASES: [text: string, mistakes: string[]][] = [
  ['', ['1: The file is empty. A definition needs at least a `source`']],
  ['# nothing\n', ['1: The file is empty. A definition needs at least a `source`']],
  [
    'just text',
    [
      '1: A definition must be a map of settings, found "just text"',
      '1: `source` is missing. Add, for example, source: { type: command, command: ["./contacts.sh"] }',
    ],
  ],
  [
    'name: x\n',
    ['1: `source` is missing. Add, for example, source: { type: command, command: ["./contacts.sh"] }'],
  ],
  [`${SOURCE}\nmoed: append\n`, ['3: `moed` is not a known setting. Did you mean `mode`?']],
  [`${SOURCE}flavor: red\n`, [`2: \`flavor\` is not a known setting. Known settings: ${SETTINGS}`]],
  [
    `${SOURCE}guards:\n  min_records: 1\n`,
    ['3: `guards.min_records` is not a known setting. Did you mean `minRecords`?'],
  ],
  [`${SOURCE}fields:\n`, [`2: \`fields\` ${MISPLACED}`]],
  [
    `${SOURCE}limits:\n  memory: 512\n  output: 10 PB\n`,
    [
      '3: `limits.memory` must be a size such as 512MB or 2GB, from 16 MB to 1 TB, found the number 512. Add a unit',
      '4: `limits.output` must be a size such as 500MB or 2GB, from 1 KB to 1000 TB, found "10 PB"',
    ],
  ],
  [
    `${SOURCE}keep: 10`,
    ['2: `keep` must be a map of settings such as { versions: 500, days: 90 }, found the number 10'],
  ],
  [
    `${SOURCE}keep: { versions: 0, day: 90 }`,
    [
      '2: `keep.day` is not a known setting. Did you mean `days`?',
      '2: `keep.versions` must be a whole number from 1 to 10000, found the number 0',
    ],
  ],
  [
    `${SOURCE}keep: { days: 3651 }`,
    ['2: `keep.days` must be a whole number from 1 to 3650, found the number 3651'],
  ],
  [`${SOURCE}compare: texts`, ['2: `compare` must be value or text, found "texts". Did you mean `text`?']],
  [`${SOURCE}priority: 101`, ['2: `priority` must be a whole number from -100 to 100, found the number 101']],
  [
    'source: { type: push, url: https://example.org }\nretries: { max: 1 }\noverlap: buffer\n',
    [
      '1: `source.url` is not a known setting. Known settings: type',
      '2: `retries` does not apply to push workflows: the client retries, Flowhook does not. Remove it',
      '3: `overlap` cannot be buffer in a push workflow: a push is not queued, but waits up to 30 s for the previous one. Remove it',
    ],
  ],
  [
    'source: { type: module }',
    [
      '1: `source.type` cannot be module in YAML. Put the .mts file into this folder instead: it is a workflow of its own, with its settings in `export const workflow`',
    ],
  ],
  [
    'source:\n  type: comand\n  command: [a]\n',
    ['2: `source.type` must be command, http or push, found "comand". Did you mean `command`?'],
  ],
  [
    'source:\n  type: htp\n  url: https://example.com/\n',
    ['2: `source.type` must be command, http or push, found "htp". Did you mean `http`?'],
  ],
  [
    'source:\n  type: command\n',
    [
      '1: `source.command` must be a list of 1 to 1000 strings such as ["node", "contacts.mjs"], found nothing',
    ],
  ],
  [
    'source:\n  type: command\n  command: node x.mjs\n',
    ['3: `source.command` must be a list, because no shell splits it. Write ["node","x.mjs"]'],
  ],
  [
    'source:\n  type: command\n  command:\n    - sleep\n    - 5\n',
    ['5: `source.command[1]` must be a non-empty string, found the number 5. Put it in quotes'],
  ],
  [
    'source:\n  type: command\n  command: [curl, "${secret.X}"]\n',
    [
      '3: `source.command[1]` must not contain a secret: every user of the machine can read arguments. Put it in `source.env` or `source.config`',
    ],
  ],
  [
    'source:\n  type: command\n  command: [a]\n  env:\n    PORT: 80\n    A-B: x\n    TMPDIR: /x\n    T: ${secret.A__B}\n',
    [
      '5: `source.env.PORT` must be a string, found the number 80. Put it in quotes',
      '6: `source.env.A-B` is not a valid environment variable name. Use letters, digits and _',
      '7: `source.env.TMPDIR` is set by Flowhook itself. Choose another name',
      '8: `source.env.T` contains a malformed secret reference. Write ${secret.NAME}, where NAME has letters, digits and single underscores',
    ],
  ],
  [
    `${SOURCE}limits: { timeout: 15 }`,
    [
      '2: `limits.timeout` must be a duration such as 500ms, 30s, 15m or 2h, at most 168h, found the number 15. Add a unit',
    ],
  ],
  [
    `${SOURCE}limits: { timeout: 15 min }`,
    [
      '2: `limits.timeout` must be a duration such as 500ms, 30s, 15m or 2h, at most 168h, found "15 min". Write 15m',
    ],
  ],
  [
    `${SOURCE}limits: { timeout: 0s }`,
    ['2: `limits.timeout` must be a duration such as 500ms, 30s, 15m or 2h, at most 168h, found "0s"'],
  ],
  [
    `${SOURCE}retries: { backoff: 11m }`,
    ['2: `retries.backoff` must be a duration such as 500ms, 30s, 15m or 2h, at most 10m, found "11m"'],
  ],
  [
    `${SOURCE}retries: { max: 1.5 }`,
    ['2: `retries.max` must be a whole number from 0 to 100, found the number 1.5'],
  ],
  [
    `${SOURCE}guards: { maxDropPercent: 101, minRecords: -1 }`,
    [
      '2: `guards.minRecords` must be a whole number from 0 to 1000000000, found the number -1',
      '2: `guards.maxDropPercent` must be a number from 0 to 100, found the number 101',
    ],
  ],
  [`${SOURCE}key: id`, ['2: `key` must be a list of 1 to 16 strings such as [id], found "id"']],
  [`${SOURCE}key: [id, id]`, ['2: `key` lists a field twice']],
  [
    `${SOURCE}mode: Replace\noverlap: yes\n`,
    [
      '2: `mode` must be replace, upsert or append, found "Replace". Did you mean `replace`?',
      '3: `overlap` must be reject or buffer, found "yes"',
    ],
  ],
  [`${SOURCE}onInvalid: ignore`, ['2: `onInvalid` must be fail or skip, found "ignore"']],
  [`${SOURCE}guards: 5`, ['2: `guards` must be a map of settings, found the number 5']],
  [`${SOURCE}name: ""`, ['2: `name` must be a string of 1 to 200 characters, found ""']],
  [
    `${SOURCE}mode: append\nmode: upsert\n`,
    ['3: This is not valid YAML: `mode` is set twice in the same map. Remove one of the two'],
  ],
  [
    `${SOURCE}__proto__: { x: 1 }\n`,
    [`2: \`__proto__\` is not a known setting. Known settings: ${SETTINGS}`],
  ],
  [
    'source:\n  type: command\n   command: ["true"]\n',
    [
      '2: This is not valid YAML: Nested mappings are not allowed in compact mappings. Check how far the next line is indented, and quote values that contain a colon',
    ],
  ],
  [
    'source:\n  type: command\n command: ["true"]\n',
    [
      '3: This is not valid YAML: All mapping items must start at the same column. Indent this line as far as the other settings of its group',
    ],
  ],
  [`${SOURCE}url: https://example.org\n`, ['2: `url` belongs under `source:`. Indent it by two spaces']],
  [`${SOURCE}name: !secret x\n`, ['2: This is not valid YAML: Unresolved tag: !secret']],
];

for (const [text, mistakes] of CASES) {
  test(`reports the mistakes in ${JSON.stringify(text.replace(SOURCE, ''))}`, () => {
    assert.deepEqual(mistakesOf(text), mistakes);
  });
}

test('broken YAML is one mistake with its line, even if more follows', () => {
  for (const [text, mistakes] of [
    [
      `${SOURCE}name: [a\nmode: append\n`,
      ['2: This is not valid YAML: the `[` in this line is never closed. Add a `]`'],
    ],
    [
      `# a "{" of a comment\nname: "{"\nsource: { type: push\nmode: replace\nkey: { a\n`,
      ['3: This is not valid YAML: the `{` in this line is never closed. Add a `}`'],
    ],
    [
      'source: { type: push }}\nname: x\n',
      ['1: This is not valid YAML: Unexpected flow-map-end token in YAML stream: "}"'],
    ],
  ] as const) {
    assert.deepEqual(mistakesOf(text), mistakes);
  }
});

test('a misspelled source is not reported as missing', () => {
  assert.deepEqual(mistakesOf('sorce: { type: push }\n'), [
    '1: `sorce` is not a known setting. Did you mean `source`?',
  ]);
});

test('the settings of a module are checked like those of a YAML file', () => {
  const parsed = parseModuleDefinition(
    { source: {}, limits: { memory: '1 gb', timeout: '1m' }, nmae: 'x', schedule: '15m' },
    { file: 'acme/crm.mts', line: 7 },
  );
  assert.ok('mistakes' in parsed);
  assert.deepEqual(
    parsed.mistakes.map(({ file, line, message }) => `${file}:${line} ${message}`),
    [
      'acme/crm.mts:7 `source` must be left out: the module itself is the source',
      'acme/crm.mts:7 `nmae` is not a known setting. Did you mean `name`?',
      'acme/crm.mts:7 `schedule` must be a cron expression or a map. Write { every: 15m }',
      'acme/crm.mts:7 `limits.memory` must be a size such as 512MB or 2GB, from 16 MB to 1 TB, found "1 gb"',
    ],
  );
});

test('reports 100 mistakes, and counts the others', () => {
  const keys = Array.from({ length: 2_000 }, (_, at) => `k${at}: 1\n`).join('');
  const parsed = parseYamlDefinition(`source: { type: push }\n${keys}`, { file: 'acme/people.yaml' });
  assert.ok('mistakes' in parsed);
  assert.equal(parsed.mistakes.length, 100);
  assert.equal(parsed.omitted, 1_900);
  assert.equal(parsed.mistakes[99]?.line, 101);
});

test('mistakes about deep nesting, long names and long placeholders are short', () => {
  const file = 'acme/people.yaml';
  const longest = (value: unknown) => {
    const parsed = parseDefinition(value, { file, lineOf: () => null });
    assert.ok('mistakes' in parsed);
    return Math.max(...parsed.mistakes.map(({ message }) => message.length));
  };
  const http = (more: object) => ({ source: { type: 'http', url: 'https://example.org/', ...more } });
  let deep: unknown = 1;
  for (let level = 0; level < 20_000; level += 1) deep = [deep];
  assert.ok(longest(http({ body: deep })) < 1_000);
  assert.ok(longest({ ...http({}), ['x'.repeat(60_000)]: 1 }) < 1_000);
  assert.ok(longest(http({ url: `https://example.org/${'${'.repeat(30_000)}` })) < 1_000);
});
