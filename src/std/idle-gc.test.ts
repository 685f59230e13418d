/** When garbage is collected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IdleGc } from './idle-gc.ts';

test('collects once, the first time that the event loop has been at rest for several looks', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const shares = [0.9, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02];
  const collected: number[] = [];
  let look = 0;
  const idleGc = new IdleGc({
    busy: () => shares[look] as number,
    collect: async () => {
      collected.push(look);
    },
  });
  idleGc.start();
  for (; look < shares.length; look += 1) t.mock.timers.tick(2_000);
  assert.deepEqual(collected, [6]);
});

test('gives up, and harms nothing else, where collecting is not allowed', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let tried = 0;
  const idleGc = new IdleGc({
    busy: () => 0,
    collect: async () => {
      tried += 1;
      throw new Error('Access to this API has been restricted');
    },
  });
  idleGc.start();
  for (let look = 0; look < 20; look += 1) {
    t.mock.timers.tick(2_000);
    await new Promise((later) => setImmediate(later));
  }
  assert.equal(tried, 1);
});

test('collects what nobody holds any more', async () => {
  const kept = new WeakRef({ large: new Array(1_000).fill('held by nobody') });
  const idleGc = new IdleGc({ busy: () => 0 });
  // Another turn of the loop: within one a WeakRef keeps its own.
  await new Promise((later) => setImmediate(later));
  for (let look = 0; look < 3; look += 1) await idleGc.tick();
  await new Promise((later) => setImmediate(later));
  assert.equal(kept.deref(), undefined);
});
