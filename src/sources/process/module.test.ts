/** Modules: what they may yield and print, their state, and how they are stopped. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { directoryOf, finish, start } from '../../../test/support/jobs/sources.ts';

/** Runs the text of a module as `acme/one.mts`. */
async function startModule(t: TestContext, text: string, input: Parameters<typeof start>[1] = {}) {
  const workflowsDirectory = await directoryOf(t, { 'acme/one.mts': text });
  return start(t, { workflowsDirectory, ...input });
}

test('a module yields records, reads its state and sets the next one', async (t) => {
  const module = `
    export default async function* (ctx: any): AsyncGenerator<object> {
      const n: number = ctx.state.get('n');
      ctx.state.set('n', n + 1);
      ctx.state.set('gone', undefined);
      yield { id: 'a', name: 'Ada', secret: ctx.secret('TOKEN'), cwd: process.cwd(), argv: process.argv.length };
      yield { id: 'b', nothing: undefined };
    }`;
  const workflowsDirectory = await directoryOf(t, { 'acme/one.mts': module });
  const run = await start(t, {
    workflowsDirectory,
    state: '{"n":4,"gone":1,"kept":[1]}',
    secrets: new Map([['TOKEN', 'abc']]),
  });
  const { lines, end } = await finish(run);
  assert.deepEqual(lines, [
    JSON.stringify({ id: 'a', name: 'Ada', secret: 'abc', cwd: join(workflowsDirectory, 'acme'), argv: 2 }),
    '{"id":"b"}',
  ]);
  assert.deepEqual(end, { ok: true, state: '{"n":5,"kept":[1]}' });
});

test('a module and the programs that it starts get a clean environment', async (t) => {
  const module = `
    import { execSync } from 'node:child_process';
    const names = (text: string) => text.match(/^\\w+(?==)/gm);
    export default () => [{ id: 'a', own: Object.keys(process.env), isPwd: process.env.PWD === process.cwd(), child: names(execSync('env', { encoding: 'utf8' })) }];`;
  const { lines } = await finish(await startModule(t, module));
  const { own, child, isPwd } = JSON.parse(lines[0] ?? '') as {
    own: string[];
    child: string[];
    isPwd: boolean;
  };
  assert.ok(isPwd);
  const known = /^(HOME|LANG|TZ|USER|PATH|LC_\w+|TMPDIR|PWD|OLDPWD|SHLVL|_|FLOWHOOK_(WORKFLOW|JOB|ATTEMPT))$/;
  assert.deepEqual(
    [...own, ...child].filter((name) => !known.test(name)),
    [],
  );
  assert.ok(own.includes('FLOWHOOK_JOB') && child.includes('FLOWHOOK_JOB'));
});

test('a module may return any iterable, and state that it does not set is unchanged', async (t) => {
  const run = await startModule(t, 'export default () => [{ id: "a" }];', { state: '{"n":1}' });
  assert.deepEqual(await finish(run), { lines: ['{"id":"a"}'], end: { ok: true, state: undefined } });
});

test('a module gets numbers as doubles, and numbers that it does not set stay exact', async (t) => {
  const run = await startModule(
    t,
    `export default function* (ctx: any) {
      yield { id: String(ctx.state.get('big')), list: ctx.state.get('list'), none: ctx.state.get('none') };
      ctx.state.set('seen', true);
      ctx.state.set('id', (JSON as any).rawJSON('9007199254740993'));
    }`,
    { state: '{"big":12345678901234567890,"list":[1.50]}' },
  );
  assert.deepEqual(await finish(run), {
    lines: ['{"id":"12345678901234567000","list":[1.5]}'],
    end: { ok: true, state: '{"big":12345678901234567890,"list":[1.50],"seen":true,"id":9007199254740993}' },
  });
});

test('everything that a module prints is logged, and never mixed with the records', async (t) => {
  const said: string[] = [];
  const progress: object[] = [];
  const run = await startModule(
    t,
    `import { execSync } from 'node:child_process';
    import { writeSync } from 'node:fs';
    export default function* (ctx: any) {
      console.log('by console');
      process.stdout.write('by stream\\n');
      writeSync(1, 'by descriptor\\n');
      execSync('echo by a child', { stdio: 'inherit' });
      process.stdout.write('unfinished');
      ctx.log.warn('by log', { n: 1 });
      ctx.log.error('two\\nlines with ' + ctx.secret('TOKEN'));
      for (let pages = 1; pages <= 500; pages++) ctx.progress({ pages, message: 'hunter"22' });
      yield { id: 'a' };
    }`,
    {
      secrets: new Map([['TOKEN', 'hunter"22']]),
      onLog: ({ level, text }) => said.push(`${level} ${text}`),
      onProgress: (news) => progress.push(news),
    },
  );
  const { lines } = await finish(run);
  assert.deepEqual(lines, ['{"id":"a"}']);
  assert.deepEqual(said, [
    'info by console',
    'info by stream',
    'info by descriptor',
    'info by a child',
    'info unfinished',
    'warn by log { n: 1 }',
    'error two',
    'error lines with ***',
  ]);
  assert.deepEqual(progress[0], { pages: 1, message: '***' });
  assert.deepEqual(progress.at(-1), { pages: 500, message: '***' });
  assert.ok(progress.length < 20, `told ${progress.length} times`);
});

test('mistakes in a module fail its run with an error that names them', async (t) => {
  const cases: [module: string, sentence: RegExp][] = [
    [
      'export default function* () { yield { id: "a" }; throw new Error("boom"); }',
      /exit code 1.*Error: boom\n.*one\.mts:1/s,
    ],
    [
      'export default function* () { yield { id: "a" }; yield [1]; }',
      /Record 2 is an array\. A record must be/,
    ],
    ['export default function* () { yield null; }', /Record 1 is null/],
    ['export default function* () { yield new Map(); }', /Record 1 is an object of type Map/],
    ['export default function* () { yield { id: 1n }; }', /Record 1 cannot be written as JSON/],
    ['export default 5;', /must be a function that yields records, found a number/],
    ['export const x = 1;', /has no default export/],
    ['export default () => 5;', /must be a generator function .* it returned a number/],
    [
      'export default function* () { yield { id: "a" }; process.exit(0); }',
      /ended before it had yielded all records/,
    ],
    [
      'export default async function* () { await new Promise(() => {}); }',
      /exit code 13.*awaits a promise that can never settle$/s,
    ],
    ['export default function* (ctx) { ctx.secret("NONE"); }', /The secret NONE is not set for team acme/],
    ['const x: = 1;', /exit code 1.*one\.mts/s],
    ['import "./gone.mjs"; export default () => [];', /gone\.mjs/],
    [
      'export default async function* () { yield { id: "a" }; Promise.reject(new Error("nobody waits")); await new Promise(() => setInterval(() => {}, 1000)); }',
      /nobody waits/,
    ],
  ];
  const check = async ([module, sentence]: (typeof cases)[number]) => {
    const { end } = await finish(await startModule(t, module));
    assert.ok(!end.ok, module);
    assert.match(end.error, sentence, module);
    assert.doesNotMatch(end.error, /module-harness|node:internal/, module);
  };
  await Promise.all(cases.map(check));
});

test('a missing module is an error before anything starts', async (t) => {
  const workflowsDirectory = await directoryOf(t, { 'acme/other.mts': '' });
  await assert.rejects(start(t, { workflowsDirectory }), /one\.mts cannot be read on this machine/);
});

test('a module that uses the signal can clean up when it is stopped', async (t) => {
  const run = await startModule(
    t,
    `import { once } from 'node:events';
    export default async function* (ctx: any) {
      const keep = setInterval(() => {}, 1000);
      yield { id: 'a' };
      await once(ctx.signal, 'abort');
      clearInterval(keep);
      console.error('cleaned up');
      yield { id: 'b' };
    }`,
    { killGraceMs: 60_000 },
  );
  const reader = run.batches[Symbol.asyncIterator]();
  await reader.next();
  run.stop();
  const end = await run.end;
  assert.ok(!end.ok && /was stopped before it had finished.*cleaned up$/s.test(end.error));
});

test('a module that never uses the signal ends immediately when it is stopped', async (t) => {
  const run = await startModule(
    t,
    'export default async function* () { yield { id: "a" }; await new Promise(() => setInterval(() => {}, 1000)); }',
    { killGraceMs: 60_000 },
  );
  const reader = run.batches[Symbol.asyncIterator]();
  await reader.next();
  run.stop();
  assert.equal((await run.end).ok, false);
});

test('a module that yields endlessly is blocked while nobody reads, and still gets the signal', async (t) => {
  const run = await startModule(
    t,
    `export default async function* (ctx: any) {
      ctx.signal.addEventListener('abort', () => process.exit(0));
      for (let n = 0; ; n++) yield { id: String(n), memory: process.memoryUsage.rss(), filler: 'x'.repeat(500) };
    }`,
    { killGraceMs: 60_000 },
  );
  const reader = run.batches[Symbol.asyncIterator]();
  const first = (await reader.next()).value as string[];
  assert.equal(JSON.parse(first[0] ?? '').id, '0');
  run.stop();
  assert.equal((await run.end).ok, false);
});

test('many records arrive complete and in order', async (t) => {
  const run = await startModule(
    t,
    'export default function* () { for (let n = 0; n < 50_000; n++) yield { id: String(n) }; }',
  );
  const { lines, end } = await finish(run);
  assert.equal(end.ok, true);
  assert.equal(lines.length, 50_000);
  assert.ok(lines.every((line, n) => line === `{"id":"${n}"}`));
});
