/** Look-ups that are shared, remembered and bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLookupCache, type Found, LookupsBusyError } from './lookup-cache.ts';

/** A cache whose look-ups are ended by the test. */
function bench() {
  const asked: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<Found<string>>>();
  let nowMs = 0;
  const cache = createLookupCache<string>({
    find(name) {
      asked.push(name);
      const end = Promise.withResolvers<Found<string>>();
      ends.set(name, end);
      return end.promise;
    },
    failedFreshMs: () => 10,
    now: () => nowMs,
  });
  return {
    ...cache,
    asked,
    pass: (ms: number) => {
      nowMs += ms;
    },
    answer: (name: string, freshMs = 100) => ends.get(name)?.resolve({ value: `${name}!`, freshMs }),
    fail: (name: string) => ends.get(name)?.reject(new Error(`no ${name}`)),
  };
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

/** Lets everything run that is not waiting for the test. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('looks a name up once for all callers, and caches the result', async () => {
  const { get, asked, answer, pass } = bench();
  const both = Promise.all([get('a'), get('a')]);
  await settle();
  assert.deepEqual(asked, ['a']);
  answer('a');
  assert.deepEqual(await both, ['a!', 'a!']);
  pass(99);
  assert.equal(await get('a'), 'a!');
  assert.deepEqual(asked, ['a']);
  pass(1);
  const again = get('a');
  await settle();
  answer('a');
  await again;
  assert.deepEqual(asked, ['a', 'a']);
});

test('caches a failure for a time of its own', async () => {
  const { get, asked, fail, pass } = bench();
  const first = assert.rejects(get('a'), /no a/);
  await settle();
  fail('a');
  await first;
  pass(9);
  await assert.rejects(get('a'), /no a/);
  assert.equal(asked.length, 1);
  pass(1);
  const again = assert.rejects(get('a'), /no a/);
  await settle();
  fail('a');
  await again;
  assert.equal(asked.length, 2);
});

test('has at most 32 look-ups under way, in the order in which they were asked for', async () => {
  const { get, asked, answer } = bench();
  const all = names('n', 40).map((name) => get(name));
  await settle();
  assert.deepEqual(asked, names('n', 32));
  answer('n5');
  await settle();
  assert.deepEqual(asked.slice(32), ['n32']);
  for (const name of names('n', 32)) answer(name);
  await settle();
  for (const name of names('n', 40)) answer(name);
  assert.equal((await Promise.all(all)).length, 40);
});

test('names whose last look-up failed get at most half of the places', async () => {
  const { get, asked, answer, fail, pass } = bench();
  for (const name of names('dead', 30)) get(name).catch(() => undefined);
  await settle();
  for (const name of names('dead', 30)) fail(name);
  await settle();
  pass(10);
  asked.length = 0;
  for (const name of names('dead', 30)) get(name).catch(() => undefined);
  const well = get('well');
  await settle();
  assert.deepEqual(asked, [...names('dead', 16), 'well']);
  answer('well');
  assert.equal(await well, 'well!');
  // One that succeeds counts like any other again.
  answer('dead0');
  await settle();
  assert.equal(asked.at(-1), 'dead16');
});

test('refuses a name while 10,000 others wait, and looks it up as soon as there is room', async () => {
  const { get, asked, answer } = bench();
  for (const name of names('n', 10_032)) get(name).catch(() => undefined);
  await settle();
  await assert.rejects(get('late'), LookupsBusyError);
  answer('n0');
  await settle();
  const late = get('late');
  for (let from = 0; from < 10_032; from += 32) {
    for (const name of asked.slice(from)) answer(name);
    await settle();
  }
  answer('late');
  assert.equal(await late, 'late!');
});
