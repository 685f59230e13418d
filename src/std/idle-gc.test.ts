/** When garbage is collected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage, collectOnceAtRest } from './idle-gc.ts';

test('collects once, the first time that the event loop has been at rest for several looks', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const shares = [0.9, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02];
  const collected: number[] = [];
  let look = 0;
  collectOnceAtRest({
    busy: () => shares[look] as number,
    // As where collecting is not allowed, which harms nothing else.
    collect: async () => {
      collected.push(look);
      throw new Error('Access to this API has been restricted');
    },
  });
  for (; look < shares.length; look += 1) t.mock.timers.tick(2_000);
  await new Promise((later) => setImmediate(later));
  assert.deepEqual(collected, [6]);
});

test('collects what nobody holds any more', async () => {
  const kept = new WeakRef({ large: new Array(1_000).fill('held by nobody') });
  // Another turn of the loop: within one a WeakRef keeps its own.
  await new Promise((later) => setImmediate(later));
  await collectGarbage();
  await new Promise((later) => setImmediate(later));
  assert.equal(kept.deref(), undefined);
});
