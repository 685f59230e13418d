/** When garbage is collected. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { collectAtRest, collectGarbage } from './idle-gc.ts';

const REST = [0.9, 0.02, 0.02, 0.5, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02];

/** Makes a look for each share of time in which the event loop was busy. */
async function look(
  t: TestContext,
  shares: (number | (() => number))[],
  input: { heap(): number; collect(): Promise<void> },
) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const left = [...shares];
  const busy = () => {
    const share = left.shift() ?? 1;
    return typeof share === 'number' ? share : share();
  };
  collectAtRest({ busy, ...input });
  for (const _ of shares) {
    t.mock.timers.tick(2_000);
    await new Promise((later) => setImmediate(later));
  }
}

test('collects once per rest, after several consecutive looks, and only if the heap has grown', async (t) => {
  let megabytes = 60;
  const collected: number[] = [];
  const input = {
    heap: () => megabytes * 1_000_000,
    collect: async () => {
      collected.push(megabytes);
      megabytes = 50;
    },
  };
  // The heap is 10 MB larger at the second rest, and 50 MB larger at the third.
  const busy = (now: number) => {
    megabytes = now;
    return 0.9;
  };
  await look(t, [() => busy(60), ...REST, () => busy(60), ...REST, () => busy(100), ...REST], input);
  assert.deepEqual(collected, [60, 100]);
});

test('stops if Node does not allow it to collect', async (t) => {
  let calls = 0;
  const collect = async () => {
    calls += 1;
    throw new Error('Access to this API has been restricted');
  };
  await look(t, [...REST, ...REST, ...REST], { heap: () => 1e9, collect });
  assert.equal(calls, 1);
});

test('collects unreferenced objects', async () => {
  const kept = new WeakRef({ large: new Array(1_000).fill('unreferenced') });
  // A WeakRef keeps its object until the end of the turn.
  await new Promise((later) => setImmediate(later));
  await collectGarbage();
  await new Promise((later) => setImmediate(later));
  assert.equal(kept.deref(), undefined);
});
