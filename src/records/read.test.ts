/** Whole reads from a real store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { makeRunning, makeWorkflow, stageRecords } from '../store/conformance/setup.ts';
import { formatter } from './formats.ts';
import { openVersion, readWhole } from './read.ts';

test('does not block the event loop between two pages, even if the reader is fast', async (t) => {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  const held = await makeRunning(store, at);
  for (let n = 0; n < 10_000; n += 500) {
    const records = Array.from({ length: 500 }, (_, place) => ({
      id: String(n + place),
      body: `{"id":"${n + place}"}`,
    }));
    await stageRecords(store, held, 'replace', records);
  }
  await store.records.publish({
    held,
    state: undefined,
    fields: ['id'],
  });

  const version = await openVersion(store, at);
  const format = formatter({ format: 'json', columns: version.fields, only: null });
  let turns = 0;
  let turn = setImmediate(function next() {
    turns += 1;
    turn = setImmediate(next);
  });
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of readWhole(store, at, version, format)) chunks.push(chunk);
  } finally {
    clearImmediate(turn);
  }
  assert.equal(JSON.parse(Buffer.concat(chunks).toString()).length, 10_000);
  assert.ok(turns >= 4, `others had ${turns} turns`);
});
