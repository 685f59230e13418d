/** A chore runs on one of several nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onOneNode } from './on-one-node.ts';

/** Stands for the database, which says which node holds the lease. */
function nodes() {
  let nowMs = 0;
  let holder: string | undefined;
  let asked = 0;
  const store = {
    instance: {
      claim: async () => '',
      get: async () => undefined,
      lease: async ({ nodeId }: { nodeId: string }) => {
        asked += 1;
        holder ??= nodeId;
        return holder === nodeId;
      },
    },
  };
  const done: string[] = [];
  const node = (nodeId: string) => {
    const work = onOneNode({ store, name: 'sweep', nodeId, elapsed: () => nowMs }, async () => {
      done.push(nodeId);
    });
    return () => work(new AbortController().signal);
  };
  return {
    done,
    node,
    asked: () => asked,
    advance: (ms: number) => {
      nowMs += ms;
    },
    die: () => {
      holder = undefined;
    },
  };
}

test('one node does the chore, and another takes over when it is gone', async () => {
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

test('a chore that runs every second renews its lease every five seconds', async () => {
  const { node, asked, advance } = nodes();
  const tick = node('one');
  for (let second = 0; second < 10; second++) {
    await tick();
    advance(1_000);
  }
  assert.equal(asked(), 2);
});
