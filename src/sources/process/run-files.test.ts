/** The state and configuration that commands get, and the state that they leave. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { finish, start } from '../../../test/support/jobs/sources.ts';

const sh = (script: string): string[] => ['sh', '-c', script];

test('a command gets its state on standard input and in a file, and sets the next state there', async (t) => {
  const command = sh('cat; cat "$FLOWHOOK_STATE"; echo; echo \'{ "page": 8 }\' > "$FLOWHOOK_STATE"');
  const { lines, end } = await finish(await start(t, { command, state: '{"page":7}' }));
  assert.deepEqual(lines, ['{"page":7}', '{"page":7}']);
  assert.deepEqual(end, { ok: true, state: '{"page":8}' });
});

test('before the first published run the state is null, and an untouched state is unchanged', async (t) => {
  const { lines, end } = await finish(await start(t, { command: sh('cat; cat "$FLOWHOOK_STATE"') }));
  assert.deepEqual(lines, ['null', 'null']);
  assert.deepEqual(end, { ok: true, state: undefined });
  const same = sh('printf \'{ "a": 1 }\\n\' > "$FLOWHOOK_STATE"');
  const again = await finish(await start(t, { command: same, state: '{"a":1}' }));
  assert.deepEqual(again.end, { ok: true, state: undefined });
});

test('a command gets and leaves numbers that a double would round', async (t) => {
  const command = sh('cat "$FLOWHOOK_STATE"; printf "[ 1.50, 1%s ]" 2345678901234567891 > "$FLOWHOOK_STATE"');
  const { lines, end } = await finish(await start(t, { command, state: '[1.50,12345678901234567890]' }));
  assert.deepEqual(lines, ['[1.50,12345678901234567890]']);
  assert.deepEqual(end, { ok: true, state: '[1.50,12345678901234567891]' });
});

test('a state that cannot be stored fails the run', async (t) => {
  const cases: [script: string, sentence: RegExp][] = [
    ['echo "{" > "$FLOWHOOK_STATE"', /The state file at the path in FLOWHOOK_STATE is not valid JSON/],
    [': > "$FLOWHOOK_STATE"', /is not valid JSON/],
    ['head -c 1100000 /dev/zero > "$FLOWHOOK_STATE"', /is not a regular file of at most 1 MiB/],
  ];
  for (const [script, sentence] of cases) {
    const { end } = await finish(await start(t, { command: sh(script) }));
    assert.ok(!end.ok && end.reason === 'error');
    assert.match(end.error, sentence);
  }
});

test('a command that fails sets no state, and a command that never reads its input is not blocked', async (t) => {
  const state = JSON.stringify({ filler: 'x'.repeat(900_000) });
  const failed = await finish(await start(t, { command: sh('echo 1 > "$FLOWHOOK_STATE"; exit 1'), state }));
  assert.ok(!failed.end.ok);
  const { end } = await finish(await start(t, { command: sh('true'), state }));
  assert.deepEqual(end, { ok: true, state: undefined });
});

test('arguments name the files of the run, and only the run can read its configuration with secrets', async (t) => {
  const command = sh(
    'cat "$1" "$FLOWHOOK_CONFIG"; echo; stat -c "\\"%a\\"" "$1" "$FLOWHOOK_STATE"; echo "\\"$2\\""',
  );
  command.push('sh', `\${config}`, `state=\${state}`);
  const config = { url: 'https://example.org', auth: [{ token: `Bearer \${secret.TOKEN}` }], pages: 3 };
  const secrets = new Map([['TOKEN', 'a"b']]);
  const { lines, end } = await finish(await start(t, { command, source: { config }, secrets }));
  assert.equal(end.ok, true);
  const filled = JSON.stringify({ url: 'https://example.org', auth: [{ token: 'Bearer a"b' }], pages: 3 });
  assert.equal(lines[0], filled + filled);
  assert.deepEqual(lines.slice(1, 3), ['"600"', '"600"']);
  assert.match(lines[3] ?? '', /^"state=\/.*\/state\.json"$/);
  await assert.rejects(
    start(t, { command, source: { config } }),
    /The secret TOKEN is not set for team acme/,
  );
});
