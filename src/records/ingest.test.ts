/** Ingest on a real store. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { definition, makeRunning, makeWorkflow } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import { ingest, removeUnseen } from './ingest.ts';
import { SeenSet } from './seen-set.ts';

test('lets others have their turn while it looks for what a run did not bring', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-ingest-'));
  const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  const held = await makeRunning(store, await makeWorkflow(store));
  const limits = { timeoutMs: 60_000, records: 10_000 };
  const { seen } = await ingest(store, {
    held,
    definition: definition({ limits }),
    lines: lines(10_000),
  });
  let turns = 0;
  let turn = setImmediate(function next() {
    turns += 1;
    turn = setImmediate(next);
  });
  await removeUnseen(store, held, seen).finally(() => clearImmediate(turn));
  assert.ok(turns >= 10, `others had ${turns} turns`);

  await removeUnseen(store, held, new SeenSet());
  assert.deepEqual(await store.records.currentSeqs({ held, afterSeq: 0, limit: 1 }), []);
});

async function* lines(count: number): AsyncGenerator<string[]> {
  for (let n = 0; n < count; n += 500) {
    yield Array.from({ length: 500 }, (_, place) => `{"id":${n + place}}`);
  }
}
