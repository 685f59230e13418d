/** Whole reads on a real store. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { makeRunning, makeWorkflow } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import { readAll } from './read.ts';

test('lets others have their turn between two pages, however fast the reader is', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-read-'));
  const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  t.after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  const at = await makeWorkflow(store);
  const held = await makeRunning(store, at);
  for (let n = 0; n < 10_000; n += 500) {
    const records = Array.from({ length: 500 }, (_, place) => ({
      id: String(n + place),
      body: `{"id":"${n + place}"}`,
    }));
    await store.records.stage({ held, mode: 'replace', records });
  }
  await store.records.publish({ held, guards: { minRecords: 0, maxDropPercent: null }, state: null });

  let turns = 0;
  let turn = setImmediate(function next() {
    turns += 1;
    turn = setImmediate(next);
  });
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of (await readAll(store, at)).bytes) chunks.push(chunk);
  } finally {
    clearImmediate(turn);
  }
  assert.equal(JSON.parse(Buffer.concat(chunks).toString()).length, 10_000);
  assert.ok(turns >= 4, `others had ${turns} turns`);
});
