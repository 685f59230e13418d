/** When garbage is collected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage, collectOnceAtRest } from './idle-gc.ts';

test('collects once, after several consecutive looks found the process idle', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const shares = [0.9, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02];
  const collected: number[] = [];
  let look = 0;
  collectOnceAtRest({
    busy: () => shares[look] as number,
    // A failure to collect, for example because Node does not allow it, has no effect.
    collect: async () => {
      collected.push(look);
      throw new Error('Access to this API has been restricted');
    },
  });
  for (; look < shares.length; look += 1) t.mock.timers.tick(2_000);
  await new Promise((later) => setImmediate(later));
  assert.deepEqual(collected, [6]);
});

test('collects unreferenced objects', async () => {
  const kept = new WeakRef({ large: new Array(1_000).fill('unreferenced') });
  // A WeakRef keeps its object until the end of the turn.
  await new Promise((later) => setImmediate(later));
  await collectGarbage();
  await new Promise((later) => setImmediate(later));
  assert.equal(kept.deref(), undefined);
});
