/** When memory is given back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GiveBack } from './give-back.ts';

test('gives memory back once, when the event loop has been at rest for some looks, and again after it was busy', async () => {
  const shares = [0.9, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02];
  const given: number[] = [];
  let look = 0;
  const giveBack = new GiveBack({
    busy: () => shares[look] as number,
    collect: async () => {
      given.push(look);
    },
  });
  for (; look < shares.length; look += 1) await giveBack.tick();
  assert.deepEqual(given, [6, 12]);
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
