/** Chores that one of several nodes does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onOneNode } from './on-one-node.ts';

/** What the far side of the wire answers: which node has the chore. */
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

test('one node does the chore, and the other one when that is gone', async () => {
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

test('a chore of every second asks who has it every five seconds', async () => {
  const { node, asked, advance } = nodes();
  const tick = node('one');
  for (let second = 0; second < 10; second++) {
    await tick();
    advance(1_000);
  }
  assert.equal(asked(), 2);
});
