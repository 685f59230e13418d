/** A chore runs on only one of several nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onOneNode } from './on-one-node.ts';

/** A fake of the database, which records the node that holds the lease. */
function nodes(during = async () => {}) {
  let nowMs = 0;
  let holder: string | undefined;
  let leaseCalls = 0;
  const store = {
    instance: {
      claim: async () => '',
      get: async () => undefined,
      lease: async ({ nodeId }: { nodeId: string }) => {
        leaseCalls += 1;
        holder ??= nodeId;
        return holder === nodeId;
      },
    },
  };
  const done: string[] = [];
  const node = (nodeId: string) => {
    const work = onOneNode({ store, name: 'sweep', nodeId, elapsed: () => nowMs }, async () => {
      await during();
      done.push(nodeId);
    });
    return () => work(new AbortController().signal);
  };
  return {
    done,
    node,
    leaseCalls: () => leaseCalls,
    advance: (ms: number) => {
      nowMs += ms;
    },
    die: () => {
      holder = undefined;
    },
  };
}

test('one node runs the chore, and another takes over when it dies', async () => {
  const { done, node, advance, die } = nodes();
  const [one, other] = [node('one'), node('other')];
  for (const tick of [one, other, one, other]) await tick();
  assert.deepEqual(done.splice(0), ['one', 'one']);
  die();
  advance(5_000);
  await other();
  await one();
  assert.deepEqual(done, ['other']);
});

test('a chore that runs every second renews its lease every 5 s', async () => {
  const { node, leaseCalls, advance } = nodes();
  const tick = node('one');
  for (let second = 0; second < 10; second++) {
    await tick();
    advance(1_000);
  }
  assert.equal(leaseCalls(), 2);
});

test('a chore that takes long renews its lease, and not after it has ended', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { node, leaseCalls } = nodes(async () => t.mock.timers.tick(60_000));
  await node('one')();
  assert.equal(leaseCalls(), 1 + 12);
  t.mock.timers.tick(60_000);
  assert.equal(leaseCalls(), 1 + 12);
});
