/** Pruning on a real store with a clock of its own. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { makeWorkflow, publishRun, readVersion } from '../store/conformance/setup.ts';
import type { Store } from '../store/store.ts';
import { recordRetention } from './retention.ts';

const HOUR_MS = 3_600_000;

async function open(t: TestContext) {
  let ahead = 0;
  const { store } = await openEmptyStore(t, { clock: () => Date.now() + ahead });
  const advance = (ms: number) => {
    ahead += ms;
  };
  return { store, advance, at: await makeWorkflow(store) };
}

async function publish(store: Store, at: { teamId: string; workflowId: string }, count: number) {
  for (let n = 0; n < count; n++) {
    const names = Array.from({ length: 300 }, (_, id) => [`p${id}`, `${n}-${id}`]);
    await publishRun(store, at, Object.fromEntries(names));
  }
}

test('prunes old versions in steps, none within the hour after it was current, and never the current one', async (t) => {
  const { store, advance, at } = await open(t);
  await publish(store, at, 12);
  const steps: number[] = [];
  const prune: Store['records']['prune'] = async (input) => {
    steps.push(input.limit);
    return store.records.prune(input);
  };
  const watched = { ...store, records: { ...store.records, prune } };
  const pruner = recordRetention({ store: watched, log: silentLogger, random: () => 0, nodeId: 'local' });
  await pruner.tick();
  assert.equal((await store.records.version(at))?.oldest, 0);
  assert.deepEqual(steps, []);

  advance(2 * HOUR_MS);
  await pruner.tick();
  assert.equal((await store.records.version(at))?.oldest, 3);
  assert.ok(steps.length > 2 && steps.every((limit) => limit >= 1 && limit <= 500), `${steps}`);
  assert.equal((await readVersion(store, { ...at, version: 3 }, 500)).length, 300);

  advance(31 * 24 * HOUR_MS);
  await pruner.tick();
  assert.equal((await store.records.version(at))?.oldest, 12);
  assert.equal((await readVersion(store, { ...at, version: 12 }, 500)).length, 300);
});
