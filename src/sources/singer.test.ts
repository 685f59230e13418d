/**
 * Singer taps: how their messages become records and state.
 *
 * `singer-output/` is the output of a real tap: tap-csv-folder 0.0.1a1 (Singer SDK 0.41.0) with two CSV files. The second
 * run had the state of the first one, after a column and a row were added to one file. The other messages are written
 * according to the specification.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { finish, start } from '../../test/support/jobs/sources.ts';

const OUTPUT = join(import.meta.dirname, 'singer-output');

type Input = Parameters<typeof start>[1];

/** Runs a tap that writes these messages. */
async function tap(t: TestContext, messages: readonly unknown[], input: Input = {}) {
  const text = messages
    .map((message) => (typeof message === 'string' ? message : JSON.stringify(message)))
    .join('\n');
  return ingest(t, { command: ['printf', '%s\n', text], ...input });
}

async function ingest(t: TestContext, input: Input) {
  const log: string[] = [];
  const run = await start(t, {
    killGraceMs: 50,
    ...input,
    source: { protocol: 'singer', ...input.source },
    onLog: ({ level, text }) => log.push(`${level} ${text}`),
  });
  const { lines, end } = await finish(run);
  return { records: lines.map((line) => JSON.parse(line) as Record<string, unknown>), lines, end, log };
}

const schema = (stream: string, key: string[], more: object = {}) => ({
  type: 'SCHEMA',
  stream,
  schema: { type: 'object', properties: { [key[0] ?? 'id']: { type: 'string' } }, ...more },
  key_properties: key,
});
const record = (stream: string, fields: object) => ({ type: 'RECORD', stream, record: fields });

test('a real tap sends several streams, and its state is passed to the next run', async (t) => {
  const script = 'if [ "$(cat "$0")" = "{}" ]; then cat first-run.jsonl; else cat second-run.jsonl; fi';
  const tapCsv: Input = {
    command: ['sh', '-c', script, `\${state}`],
    workflowsDirectory: OUTPUT,
    key: ['_stream', 'id'],
  };
  const first = await ingest(t, tapCsv);
  assert.ok(first.end.ok);
  assert.deepEqual(
    first.records.map(({ _stream, _id, name }) => [_stream, _id, name]),
    [
      ['people', '1', 'Ada Lovelace'],
      ['people', '2', 'Grace Hopper'],
      ['people', '3', 'Edsger "W." Dijkstra'],
      ['teams', '10', 'Analysis'],
      ['teams', '20', 'Algorithms'],
    ],
  );
  const state = first.end.state ?? '';
  const { bookmarks } = JSON.parse(state) as { bookmarks: Record<string, unknown> };
  assert.deepEqual(Object.keys(bookmarks), ['people', 'teams']);

  const second = await ingest(t, { ...tapCsv, state });
  assert.ok(second.end.ok);
  assert.equal(second.records.length, 6);
  assert.deepEqual(
    second.records.filter(({ since }) => since !== undefined).map(({ name }) => name),
    ['Ada King', 'Grace Hopper', 'Edsger "W." Dijkstra', 'Barbara Liskov'],
  );
  assert.match(second.end.state ?? '', /2026-02-01T06:00:00/);
});

test('with several streams, ids consist of the stream and the key of its schema', async (t) => {
  const { records } = await tap(t, [
    schema('users', ['id']),
    record('users', { id: 7, name: 'Ada' }),
    schema('visits', ['user', 'day']),
    record('visits', { id: 'v', user: 7, day: '2026-01-01' }),
    record('visits', { id: 'v', user: 7, day: '2026-01-02' }),
    record('schemaless', { id: 7 }),
  ]);
  assert.deepEqual(
    records.map(({ id }) => id),
    ['users:7', ...records.slice(1, 3).map(({ id }) => id), 'schemaless:7'],
  );
  assert.match(String(records[1]?.id), /^visits:[0-9a-f]{32}$/);
  assert.notEqual(records[1]?.id, records[2]?.id);
  assert.deepEqual(records[0], { id: 'users:7', name: 'Ada', _stream: 'users', _id: 7 });
  assert.equal(records[1]?._id, 'v');
});

test('with one selected stream, only the id of a record is set from the key of the schema', async (t) => {
  const messages = [
    schema('users', ['email']),
    record('teams', { id: 't' }),
    record('users', { email: 'ada@example.org', big: '' }),
    '{"type":"record","stream":"users","record":{"email":"b@example.org","big":12345678901234567890}}',
  ];
  const { lines } = await tap(t, messages, { source: { streams: ['users'] } });
  assert.deepEqual(lines, [
    '{"email":"ada@example.org","big":"","id":"ada@example.org"}',
    '{"email":"b@example.org","big":12345678901234567890,"id":"b@example.org"}',
  ]);
  const own = await tap(t, messages, { source: { streams: ['users'] }, key: ['big'] });
  assert.equal(own.lines[0], '{"email":"ada@example.org","big":""}');
});

test('a record without its key is passed on without an id, and the log says why', async (t) => {
  const messages = [schema('users', ['email']), record('users', { id: 5, email: null, name: 'Ada' })];
  const { lines, end, log } = await tap(t, messages);
  assert.equal(end.ok, true);
  assert.deepEqual(lines, ['{"email":null,"name":"Ada","_stream":"users"}']);
  assert.deepEqual(log, [
    'warn Message 2 of the tap (RECORD of users): the field `email`, which identifies the record, is null',
  ]);
});

test('the last STATE is stored, even without records; without a STATE the state is unchanged', async (t) => {
  const states = await tap(t, [
    { type: 'STATE', value: { at: 1 } },
    '{"type":"STATE","value":{"at":12345678901234567890,"rate":1.50}}',
  ]);
  assert.deepEqual(states.end, { ok: true, state: '{"at":12345678901234567890,"rate":1.50}' });
  assert.deepEqual((await tap(t, [record('a', { id: 1 })])).end, { ok: true, state: undefined });
});

test('a tap that fails stores no state', async (t) => {
  const { end } = await ingest(t, { command: ['sh', '-c', `echo '{"type":"STATE","value":1}'; exit 1`] });
  assert.ok(!end.ok && end.reason === 'error');
});

test('a schema change during a run is logged, and applies to later records', async (t) => {
  const { records, log } = await tap(t, [
    schema('users', ['id']),
    record('users', { id: 1 }),
    schema('users', ['id']),
    schema('users', ['id'], { required: ['id'] }),
    record('users', { id: 2 }),
    schema('users', ['email']),
    record('users', { id: 3, email: 'c@example.org' }),
  ]);
  assert.deepEqual(
    records.map(({ id }) => id),
    ['users:1', 'users:2', 'users:c@example.org'],
  );
  assert.deepEqual(log, [
    'info The tap changed the schema of the stream users',
    'info The tap changed the schema of the stream users; its key changed from [id] to [email], so ids change',
  ]);
});

test('ACTIVATE_VERSION is logged if the mode keeps old records', async (t) => {
  const messages = [
    schema('users', ['id']),
    { ...record('users', { id: 1 }), version: 5 },
    { type: 'ACTIVATE_VERSION', stream: 'users', version: 5 },
    { type: 'ACTIVATE_VERSION', stream: 'users', version: 5 },
  ];
  assert.deepEqual((await tap(t, messages)).log, []);
  const { log, records } = await tap(t, messages, { mode: 'upsert' });
  assert.equal(records.length, 1);
  assert.deepEqual(log, [
    'warn The tap reports that earlier records of the stream users are gone. Mode upsert keeps them; mode replace would remove them',
  ]);
});

test('a selected stream that was never sent is reported, with the streams that were sent', async (t) => {
  const { log, end } = await tap(t, [schema('users', ['id'])], { source: { streams: ['user', 'teams'] } });
  assert.equal(end.ok, true);
  assert.deepEqual(log, [
    'warn The tap sent nothing for the streams user, teams. Streams that it sent: users',
  ]);
});

test('messages of unknown types are ignored', async (t) => {
  const { end, lines } = await tap(t, [{ type: 'METRIC', value: 1 }, record('a', { id: 1 })]);
  assert.equal(end.ok, true);
  assert.equal(lines.length, 1);
});

test('an invalid message fails the run with its position and the reason', async (t) => {
  const cases: [message: unknown, sentence: RegExp][] = [
    ['{"type":"RECORD",', /^Message 2 of the tap is not valid JSON: /],
    ['[1]', /^Message 2 of the tap is not a Singer message, .*`protocol: ndjson`/],
    [{ id: 1 }, /is not a Singer message/],
    [{ type: 'RECORD', record: {} }, /\(RECORD\) has no `stream`, which must be a string/],
    [
      { type: 'RECORD', stream: 'a', record: [1] },
      /\(RECORD of a\) has no `record`, which must be an object/,
    ],
    [{ type: 'SCHEMA', stream: 'a' }, /\(SCHEMA of a\) has no `schema`/],
    [
      { type: 'SCHEMA', stream: 'a', schema: {}, key_properties: 'id' },
      /`key_properties` that are not a list of at most 100 names/,
    ],
    [{ type: 'STATE' }, /\(STATE\) has no `value`/],
    [
      { type: 'BATCH', stream: 'a', manifest: [] },
      /is of the type BATCH, which is not supported. Remove `batch_config`/,
    ],
  ];
  for (const [message, sentence] of cases) {
    const { end } = await tap(t, [record('a', { id: 1 }), message, record('a', { id: 2 })]);
    assert.ok(!end.ok && end.reason === 'output', JSON.stringify(message));
    assert.match(end.error, sentence);
  }
});

test('a tap that continues after a broken message is stopped', async (t) => {
  const script = `echo broken; exec sleep 1000`;
  const { end } = await ingest(t, { command: ['sh', '-c', script] });
  assert.ok(!end.ok && /^Message 1 of the tap is not valid JSON/.test(end.error));
});

test('many records arrive complete, in order and in batches', async (t) => {
  const script = `for (let n = 0; n < 20000; n++) console.log(JSON.stringify({ type: 'RECORD', stream: 'a', record: { id: n } }))`;
  const { records, end } = await ingest(t, { command: ['node', '-e', script] });
  assert.equal(end.ok, true);
  assert.equal(records.length, 20_000);
  assert.ok(records.every(({ _id }, n) => _id === n));
});

test('log lines that quote messages mask secrets and terminal control characters', async (t) => {
  const name = 'of supersecret-token \u001b[31m';
  const { log } = await tap(t, [schema(name, ['id']), record(name, { other: 1 })], {
    secrets: new Map([['TOKEN', 'supersecret-token']]),
  });
  assert.match(log.join('\n'), /RECORD of of \*\*\* \[31m/);
  assert.doesNotMatch(log.join('\n'), /supersecret|[^\P{Cc}\n]/u);
});
