/** When memory is given back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GiveBack } from './give-back.ts';

test('gives memory back once, the first time that the event loop has been at rest for some looks', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const shares = [0.9, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02];
  const given: number[] = [];
  let look = 0;
  const giveBack = new GiveBack({
    busy: () => shares[look] as number,
    collect: async () => {
      given.push(look);
    },
  });
  giveBack.start();
  for (; look < shares.length; look += 1) t.mock.timers.tick(2_000);
  assert.deepEqual(given, [6]);
});

test('ends where giving back is not allowed, and nothing else does', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let tried = 0;
  const giveBack = new GiveBack({
    busy: () => 0,
    collect: async () => {
      tried += 1;
      throw new Error('Access to this API has been restricted');
    },
  });
  giveBack.start();
  for (let look = 0; look < 20; look += 1) {
    t.mock.timers.tick(2_000);
    await new Promise((later) => setImmediate(later));
  }
  assert.equal(tried, 1);
});

test('collects what nobody holds any more', async () => {
  const kept = new WeakRef({ large: new Array(1_000).fill('held by nobody') });
  const giveBack = new GiveBack({ busy: () => 0 });
  // Another turn of the loop: within one a WeakRef keeps its own.
  await new Promise((later) => setImmediate(later));
  for (let look = 0; look < 3; look += 1) await giveBack.tick();
  await new Promise((later) => setImmediate(later));
  assert.equal(kept.deref(), undefined);
});
