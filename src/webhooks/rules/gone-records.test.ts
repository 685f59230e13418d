/** Decisions about records that are erased before they are all examined. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listed, manyRecords, setUpRules } from '../../../test/support/webhooks/rules.ts';

/** Runs `meanwhile` before an engine writes its nth step; 0: before each step. */
function before(
  store: Awaited<ReturnType<typeof setUpRules>>['store'],
  nth: number,
  meanwhile: () => Promise<void>,
) {
  let steps = 0;
  return {
    ...store,
    decisions: {
      ...store.decisions,
      step: async (input: Parameters<typeof store.decisions.step>[0]) => {
        steps += 1;
        if (steps === nth || nth === 0) await meanwhile();
        return store.decisions.step(input);
      },
    },
  };
}

test('a decision starts again if records are erased between its steps', async (t) => {
  const { subscribe, publish, engine, sent, decisions, store, at } = await setUpRules(t);
  const webhook = await subscribe({ filter: 'record.n == 1 || record.n == 4999', firstVersion: 'send' });
  await publish(manyRecords(5_000));
  const erasing = before(store, 2, async () => {
    await store.erasure.remove({ ...at, seqs: [2, 3] });
  });
  await engine({ store: erasing }).tick();
  const [message] = await sent(webhook);
  assert.deepEqual(message && listed(message), ['added r4999']);
  assert.deepEqual(await decisions(webhook), [{ state: 'sent', matched: 1, examined: 4_998, reason: null }]);
});

test('a record that became quiet before its decision started again is sent all the same', async (t) => {
  const { subscribe, publish, engine, sent, store, at } = await setUpRules(t);
  const filter = 'record.n == 1 || record.n == 4999';
  const webhook = await subscribe({ filter, firstVersion: 'send', cooldownMs: 3_600_000 });
  await publish(manyRecords(5_000));
  const erasing = before(store, 2, async () => {
    await store.erasure.remove({ ...at, seqs: [4] });
  });
  await engine({ store: erasing }).tick();
  assert.deepEqual((await sent(webhook)).map(listed), [['added r1', 'added r4999']]);
});

test('a digest counts nothing twice if its decision starts again, also what it has no room for', async (t) => {
  const { subscribe, publish, engine, sent, store, at, advance } = await setUpRules(t);
  const digest = { everyMs: 3_600_000 };
  const webhook = await subscribe({ filter: 'record.n >= 0', firstVersion: 'send', digest });
  await publish({ x: { n: 1 }, y: { n: 1 } });
  await publish({ x: { n: 2 }, y: { n: -1 }, ...manyRecords(5_000) });
  let isErased = false;
  const erasing = before(store, 0, async () => {
    const open = await store.decisions.endedDigest({ teamId: at.teamId, webhookId: webhook });
    const counted = open?.rows.find(({ key }) => key === '+')?.matches ?? 0;
    if (isErased || counted === 0) return;
    isErased = true;
    await store.erasure.remove({ ...at, seqs: [5_000] });
  });
  const rules = engine({ store: erasing });
  await rules.tick();
  assert.ok(isErased, 'while some have no row already');
  advance(3_600_000);
  await rules.tick();
  assert.deepEqual(
    (await sent(webhook)).map(({ data }) => [data.matched, data.records]),
    [[5_002, 1_000]],
  );
});
