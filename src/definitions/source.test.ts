/** Definitions of commands, taps and pushes, and each mistake in them with its message. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of definitions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYamlDefinition } from './definition.ts';

function read(text: string) {
  const parsed = parseYamlDefinition(text, { file: 'acme/crm.yaml' });
  if ('definition' in parsed) return parsed.definition.source;
  return parsed.mistakes.map(({ line, message }) => `${line}: ${message}`);
}

const command = (more: string) => `source:\n  type: command\n  command: [tap, "\${config}"]\n${more}`;
const singer = (more: string) =>
  `source:\n  type: command\n  command: [tap, "--state", "\${state}"]\n  protocol: singer\n${more}`;

test('a tap may name its streams with `stream` or `streams`', () => {
  for (const [written, streams] of [
    ['  stream: users\n', ['users']],
    ['  streams: [users, teams, users]\n', ['users', 'teams']],
    ['', null],
  ] as const) {
    const source = read(singer(`${written}mode: upsert\n`));
    assert.ok(!Array.isArray(source) && source.type === 'command');
    assert.deepEqual(source.streams, streams);
    assert.equal(source.protocol, 'singer');
  }
});

test('several streams may share a key that includes the stream', () => {
  assert.ok(!Array.isArray(read(singer('mode: upsert\nkey: [_stream, id]\n'))));
  assert.ok(!Array.isArray(read(singer('  stream: users\nmode: upsert\nkey: [id]\n'))));
});

const CASES: [text: string, mistakes: string[]][] = [
  [
    command(''),
    [
      '3: `source.command[1]` uses a config file, but `source.config` is missing. Add `source.config`, a map that is written to the file',
    ],
  ],
  [command('  config: config.json\n'), ['4: `source.config` must be a map of settings, found "config.json"']],
  [
    command('  config:\n    token: "${secrets.X}"\n    sizes: [1, .inf]\n'),
    [
      '5: `source.config.token` contains a malformed secret reference. Write ${secret.NAME}, where NAME has letters, digits and single underscores',
      '6: `source.config.sizes[1]` must be a number that JSON can represent, found Infinity',
    ],
  ],
  [
    command('  config: {}\n  stream: users\n'),
    ['5: `source.stream` has no effect without `protocol: singer`. Add this setting, or remove `stream`'],
  ],
  [
    singer('  stream: a\n  streams: [a]\nmode: append\n'),
    ['5: `source.stream` cannot be used with `streams`. Remove one of them'],
  ],
  [
    singer('  streams: users\nmode: append\n'),
    ['5: `source.streams` must be a list of 1 to 1000 strings such as [users], found "users"'],
  ],
  [
    singer('mode: upsert\nkey: [id]\n'),
    [
      '6: `key` must include _stream, such as [_stream, id], if the tap sends several streams: otherwise their records could replace each other. Or choose one stream with `source.stream`',
    ],
  ],
  [
    singer('  stream: users\nmode: replace\n'),
    [
      '6: `mode` must be upsert or append if the tap gets its state: it then sends only new records, and replace would remove all others',
    ],
  ],
  [
    'source:\n  type: command\n  command: [a]\n  protocol: xml\n',
    ['4: `source.protocol` must be ndjson or singer, found "xml"'],
  ],
  [
    'source: { type: push }\nschedule: { every: 1h }\npriority: 5\n',
    [
      '2: `schedule` does not apply to push workflows: they run when a client pushes records. Remove it',
      '3: `priority` does not apply to push workflows: a push does not wait in the queue. Remove it',
    ],
  ],
];

for (const [text, mistakes] of CASES) {
  test(`reports the mistakes in ${JSON.stringify(text.replace('source:\n  type: command\n', ''))}`, () => {
    assert.deepEqual(read(text), mistakes);
  });
}
