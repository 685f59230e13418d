/** The checking thread: no definition can block it for long, and teams take turns. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Problem } from '../model/error.ts';
import { type CheckOptions, DefinitionChecks } from './checks.ts';

const FILE = 'acme/people.yaml';

/** A thread that runs this code for each message. */
const thread = (onMessage: string, resourceLimits = {}) =>
  new Worker(
    `const { parentPort } = require('node:worker_threads');
    parentPort.on('message', (given) => { ${onMessage} });
    parentPort.postMessage({ ready: true });`,
    { eval: true, resourceLimits },
  );

const responsive = () =>
  thread(`parentPort.postMessage({ checked: { definition: given.file, nextRunAt: null } });`);

function checksOf(t: TestContext, options: CheckOptions = {}) {
  const checks = new DefinitionChecks(options);
  t.after(() => checks.stop());
  return checks;
}

const json = (fields: object, origins: Record<string, string> = {}) => ({
  json: JSON.stringify(fields),
  file: FILE,
  ceilings: {
    timeoutMs: Number.POSITIVE_INFINITY,
    memoryBytes: Number.POSITIVE_INFINITY,
    outputBytes: Number.POSITIVE_INFINITY,
    records: Number.POSITIVE_INFINITY,
    retries: Number.POSITIVE_INFINITY,
  },
  secrets: new Map(Object.entries(origins).map(([name, origin]) => [name, { origins: new Set([origin]) }])),
  nowMs: Date.UTC(2026, 0, 1),
});

test('returns the definition and the first time of its schedule', async (t) => {
  const checks = checksOf(t);
  const source = { type: 'http', url: 'https://example.org/', headers: { 'x-key': `$\{secret.A}` } };
  const schedule = { cron: '0 6 * * *' };
  const checked = await checks.check('team', json({ source, schedule }, { A: 'https://example.org' }));
  assert.ok('definition' in checked);
  assert.equal(checked.definition.source.type, 'http');
  assert.equal(checked.nextRunAt, Date.UTC(2026, 0, 1, 6));
  const refused = await checks.check('team', json({ source }, { A: 'https://example.com' }));
  assert.ok('mistakes' in refused);
  assert.match(refused.mistakes[0]?.message ?? '', /would receive the secret A/);
});

test('a file is checked, with the lines of its mistakes', async (t) => {
  const checked = await checksOf(t).checkFile({ yaml: 'source: { type: push }\nnope: 1\n', file: FILE });
  assert.ok('mistakes' in checked);
  assert.deepEqual(
    checked.mistakes.map(({ line }) => line),
    [2],
  );
});

test('a check that takes too long is refused, and the next one gets a new thread', async (t) => {
  const threads = [() => thread('for (;;);'), responsive];
  const checks = checksOf(t, {
    limitMs: 50,
    open: () => (threads.shift() ?? assert.fail('a third thread'))(),
  });
  const [refused, next] = await Promise.all([checks.check('a', json({})), checks.check('a', json({}))]);
  assert.ok('mistakes' in refused);
  assert.match(refused.mistakes[0]?.message ?? '', /takes more than 0\.05 s\. Shorten its patterns/);
  assert.ok('definition' in next);
});

test('a check that takes too much memory is refused, and the next one gets a new thread', async (t) => {
  const hungry = () =>
    thread('const kept = []; for (;;) kept.push({ a: [Math.random()] });', { maxOldGenerationSizeMb: 8 });
  const threads = [hungry, responsive];
  const checks = checksOf(t, {
    open: () => (threads.shift() ?? assert.fail('a third thread'))(),
    limitMs: 60_000,
  });
  const refused = await checks.check('a', json({}));
  assert.ok('mistakes' in refused);
  assert.match(refused.mistakes[0]?.message ?? '', /of memory\. Shorten its patterns/);
  assert.ok('definition' in (await checks.check('a', json({}))));
});

test('a team with many definitions delays another team by at most one check', async (t) => {
  const checks = checksOf(t, { open: responsive });
  const done: string[] = [];
  const check = async (team: string) => {
    await checks.check(team, json({}));
    done.push(team);
  };
  await Promise.all([check('a'), check('a'), check('a'), check('b')]);
  assert.deepEqual(done, ['a', 'b', 'a', 'a']);
});

test('definitions of a team with too many waiting ones are refused, and those of another team are not', async (t) => {
  const checks = checksOf(t, { open: responsive });
  const flood = await Promise.allSettled(Array.from({ length: 400 }, () => checks.check('a', json({}))));
  const refused = flood.filter((one) => one.status === 'rejected');
  assert.ok(refused.length > 100 && refused.length < 300);
  assert.ok(refused.every(({ reason }) => reason instanceof Problem && reason.code === 'overloaded'));
  const beside = Array.from({ length: 400 }, () => checks.check('a', json({})).catch(() => undefined));
  assert.ok('definition' in (await checks.check('b', json({}))));
  await Promise.all(beside);
});
