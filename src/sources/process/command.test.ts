/** Commands: their output, environment, back-pressure and failures, with real programs. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { directoryOf, finish, start } from '../../../test/support/jobs/sources.ts';
import { until } from '../../../test/support/until.ts';

const sh = (script: string): string[] => ['sh', '-c', script];
const node = (script: string): string[] => ['node', '-e', script];

test('blank lines are skipped; CRLF, a byte order mark and an unfinished last line are accepted', async (t) => {
  const script = String.raw`printf '\357\273\277{"id":"1"}\r\n\n   \n{"id":"2"}\n{"id":"3"}'`;
  const { lines, end } = await finish(await start(t, { command: sh(script) }));
  assert.deepEqual(lines, ['{"id":"1"}', '{"id":"2"}', '{"id":"3"}']);
  assert.deepEqual(end, { ok: true, state: undefined });
});

test('a character that is split between two writes is read correctly', async (t) => {
  const command = node(`
    const bytes = Buffer.from('{"id":"é"}\\n');
    process.stdout.write(bytes.subarray(0, 8), () => setTimeout(() => process.stdout.write(bytes.subarray(8)), 20));`);
  const { lines } = await finish(await start(t, { command }));
  assert.deepEqual(lines, ['{"id":"é"}']);
});

test('output is kept if the command ends before anybody reads it', async (t) => {
  const run = await start(t, { command: node("console.log('{}\\n'.repeat(2000))") });
  await until('the command is gone', () => !existsSync(`/proc/${run.process.pid}`));
  const { lines, end } = await finish(run);
  assert.equal(lines.length, 2000);
  assert.equal(end.ok, true);
});

test('half a record of a command that failed while writing is dropped', async (t) => {
  for (const command of [sh(`printf '{}\\n{"id":'; exit 1`), sh(`printf '{}\\n{"id":'; kill -KILL $$`)]) {
    const { lines, end } = await finish(await start(t, { command }));
    assert.ok(lines.every((line) => line === '{}'));
    assert.ok(!end.ok && end.reason === 'error');
  }
});

test('a batch has at most 2,000 lines', async (t) => {
  const run = await start(t, { command: node("process.stdout.write('{}\\n'.repeat(30_000))") });
  const sizes: number[] = [];
  for await (const batch of run.batches) sizes.push(batch.length);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    30_000,
  );
  assert.ok(Math.max(...sizes) <= 2_000);
});

test('a line over 1 MiB fails the run with reason `output`', async (t) => {
  const command = node(
    "process.stdout.write('{}\\n' + 'x'.repeat(2 ** 20 + 1)); setInterval(() => {}, 1000)",
  );
  const { end } = await finish(await start(t, { command }));
  assert.ok(!end.ok && end.reason === 'output');
  assert.match(
    end.error,
    /Line 2 is longer than 1048576 bytes\. It must be UTF-8 with one JSON object per line, at most 1 MiB/,
  );
});

test('a line of exactly 1 MiB is accepted', async (t) => {
  const command = node("process.stdout.write('x'.repeat(2 ** 20) + '\\n{}\\n')");
  const { lines, end } = await finish(await start(t, { command }));
  assert.deepEqual(
    lines.map((line) => line.length),
    [2 ** 20, 2],
  );
  assert.equal(end.ok, true);
});

test('invalid UTF-8 fails the run with reason `output`', async (t) => {
  const { end } = await finish(await start(t, { command: sh(String.raw`printf '{"id":"\351"}\n'`) }));
  assert.ok(!end.ok && end.reason === 'output');
  assert.match(end.error, /not UTF-8/);
});

test('a command that writes endlessly is blocked while nobody reads', async (t) => {
  const directory = await directoryOf(t, { count: '' });
  const file = join(directory, 'count');
  // Each completed write is counted, so a constant count means that the writer waits.
  const command = node(`
    const fs = require('node:fs');
    const chunk = '{"id":"1"}\\n'.repeat(100);
    for (let n = 0; ; n++) { fs.writeSync(1, chunk); fs.writeFileSync(${JSON.stringify(file)}, String(n)); }`);
  const run = await start(t, { command });
  const waits = () => readFileSync(`/proc/${run.process.pid}/stat`, 'utf8').includes(') S ');
  await until('the writer waits', () => Number(readFileSync(file, 'utf8')) > 50 && waits());
  const before = Number(readFileSync(file, 'utf8'));
  assert.ok(before * 1_100 < 2 ** 21, `${before} writes fit into the pipe`);

  const reader = run.batches[Symbol.asyncIterator]();
  for (let batch = 0; batch < 50; batch++) await reader.next();
  await until('the writer continues', () => Number(readFileSync(file, 'utf8')) > before);
  await reader.return?.();
  const end = await run.end;
  assert.ok(!end.ok && /was stopped before it had finished/.test(end.error));
});

test('the environment is clean, and identifies the run', async (t) => {
  const environment = new Map([
    ['PATH', '/usr/bin:/bin'],
    ['LC_TIME', 'C'],
    ['FLOWHOOK_ENCRYPTION_KEY', 'very secret'],
    ['FLOWHOOK_SECRET__ACME__TOKEN', 'abc'],
  ]);
  const command = node('console.log(JSON.stringify({ ...process.env, cwd: process.cwd() }))');
  const env = { TOKEN: `Bearer \${secret.TOKEN}` };
  process.env.FLOWHOOK_ENCRYPTION_KEY = 'very secret';
  t.after(() => delete process.env.FLOWHOOK_ENCRYPTION_KEY);
  const secrets = new Map([['TOKEN', 's3cret$&']]);
  const { lines } = await finish(await start(t, { command, source: { env }, environment, secrets }));
  const { TMPDIR, PATH, PWD, OLDPWD, SHLVL, _, cwd, ...rest } = JSON.parse(lines[0] ?? '');
  assert.deepEqual(rest, {
    LC_TIME: 'C',
    TOKEN: 'Bearer s3cret$&',
    FLOWHOOK_WORKFLOW: 'one',
    FLOWHOOK_JOB: 'job_trial',
    FLOWHOOK_ATTEMPT: '1',
    FLOWHOOK_STATE: `${TMPDIR}/state.json`,
  });
  assert.ok(PATH.startsWith('/usr/bin:/bin:'));
  assert.equal(cwd, tmpdir());
  assert.match(TMPDIR, /flowhook-job_trial-1-/);
});

test('TMPDIR is a new directory with only the input and the state, removed after the run', async (t) => {
  const command = sh(
    `ls -A "$TMPDIR" | wc -l; echo "\\"$TMPDIR\\""; mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"`,
  );
  const { lines, end } = await finish(await start(t, { command }));
  assert.equal(end.ok, true);
  assert.equal(lines[0]?.trim(), '2');
  assert.equal(existsSync(JSON.parse(lines[1] ?? '')), false);
});

test('standard input contains the state, and only the three standard streams are open', async (t) => {
  const { lines } = await finish(
    await start(t, { command: sh('cat; ls /proc/self/fd/3 2>/dev/null; echo {}') }),
  );
  // `ls` would open a directory as descriptor 3.
  assert.deepEqual(lines, ['null', '{}']);
});

test('a failure names the exit code and the last lines of standard error, without secrets', async (t) => {
  const secrets = new Map([['TOKEN', 'hunter22']]);
  const command = sh(
    'for i in $(seq 1 30); do echo "line $i" >&2; done; echo "no access with hunter22" >&2; exit 3',
  );
  const { end } = await finish(await start(t, { command, secrets }));
  assert.ok(!end.ok && end.reason === 'error');
  assert.match(
    end.error,
    /The command sh ended with exit code 3\. The end of its standard error:\nline 12\n/,
  );
  assert.match(end.error, /no access with \*\*\*$/);
});

test('the error of a command that was terminated by a signal names the signal', async (t) => {
  const { end } = await finish(await start(t, { command: sh('kill -SEGV $$') }));
  assert.ok(!end.ok && /was terminated by the signal SIGSEGV/.test(end.error));
});

test('a command that cannot start is refused with the reason', async (t) => {
  const directory = await directoryOf(t, { 'plain.txt': 'not a program' });
  await chmod(join(directory, 'plain.txt'), 0o644);
  const cases: [input: Parameters<typeof start>[1], sentence: RegExp][] = [
    [
      { command: ['no-such-program'] },
      /no-such-program was not found in any of the \d+ folders? of PATH on this machine\. Install it/,
    ],
    [{ command: ['./no-such-file'] }, /the file .*no-such-file does not exist/],
    [
      { command: ['./plain.txt'], workflowsDirectory: directory },
      /plain\.txt is not executable \(chmod \+x\)/,
    ],
    [{ command: ['/usr/bin'] }, /\/usr\/bin is a directory/],
    [{ command: ['true'], workflowsDirectory: join(directory, 'gone') }, /gone, in which .* does not exist/],
    [
      { command: ['true'], source: { env: { A: `\${secret.API_KEY}` } } },
      /API_KEY is not set for team acme\. Set FLOWHOOK_SECRET__ACME__API_KEY.* secrets\/acme\.yaml/,
    ],
  ];
  for (const [input, sentence] of cases) await assert.rejects(start(t, input), sentence);
});
