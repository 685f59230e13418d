/** Lookups are shared, cached and limited. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLookupCache, type Found, ResolveError } from './resolver.ts';

/** A cache whose lookups are ended by the test. */
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

/** Lets pending callbacks run. */
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

test('caches a failure for its own time', async () => {
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

test('a team has at most 24 concurrent lookups of new names, in the order of its calls', async () => {
  const { get, asked, answer } = bench();
  const all = names('n', 40).map((name) => get(name, 'a'));
  await settle();
  assert.deepEqual(asked, names('n', 24));
  answer('n5');
  await settle();
  assert.deepEqual(asked.slice(24), ['n24']);
  for (const name of names('n', 24)) answer(name);
  await settle();
  for (const name of names('n', 40)) answer(name);
  assert.equal((await Promise.all(all)).length, 40);
});

test('a team’s names without a response delay no other team, and no name that resolved before', async () => {
  const { get, asked, answer, pass } = bench();
  const before = get('known', 'flood');
  await settle();
  answer('known');
  await before;
  await settle();
  pass(100);
  asked.length = 0;
  for (const name of names('dead', 900)) get(name, 'flood').catch(() => undefined);
  get('known', 'flood').catch(() => undefined);
  get('new', 'other').catch(() => undefined);
  await settle();
  assert.deepEqual(asked, [...names('dead', 24), 'known', 'new']);
});

test('a name that waits in the queue of one team is looked up in the turn of another team that requests it', async () => {
  const { get, asked, answer } = bench();
  for (const name of names('dead', 900)) get(name, 'flood').catch(() => undefined);
  const inLine = get('shared', 'flood');
  const other = get('shared', 'other');
  await settle();
  assert.equal(asked.at(-1), 'shared');
  answer('shared');
  assert.deepEqual(await Promise.all([inLine, other]), ['shared!', 'shared!']);
});

test('names whose last lookup failed come after the new names of their team', async () => {
  const { get, asked, answer, fail, pass } = bench();
  for (const name of names('dead', 24)) get(name).catch(() => undefined);
  await settle();
  for (const name of names('dead', 24)) fail(name);
  await settle();
  pass(10);
  for (const name of names('busy', 24)) get(name).catch(() => undefined);
  await settle();
  asked.length = 0;
  for (const name of names('dead', 24)) get(name).catch(() => undefined);
  get('new').catch(() => undefined);
  answer('busy0');
  answer('busy1');
  await settle();
  assert.deepEqual(asked, ['new', 'dead0']);
});

test('refuses a name while 7,500 names of its team wait, and looks it up as soon as there is room', async () => {
  const { get, asked, answer } = bench();
  for (const name of names('n', 7_524)) get(name).catch(() => undefined);
  await settle();
  await assert.rejects(get('late'), ResolveError);
  answer('n0');
  await settle();
  const late = get('late');
  for (let from = 0; from < asked.length; ) {
    const more = asked.slice(from);
    from += more.length;
    for (const name of more) answer(name);
    await settle();
  }
  answer('late');
  assert.equal(await late, 'late!');
});
