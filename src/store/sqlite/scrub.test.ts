/** Scrubs erased content from the disk while the database is open. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyStore } from '../conformance/empty-store.ts';
import { makeWorkflow, publishRun, readVersion } from '../conformance/setup.ts';

test('scrubs an open database, which continues to work', async (t) => {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  await publishRun(store, at, { a: 'Ada', b: 'Bob' });
  const clean = await store.erasure.scrub({ traces: ['nobody@x.test'], rewriteBytes: 0 });
  assert.deepEqual(clean, { logEmptied: true, rewritten: false, tracesLeft: false });
  const large = await store.erasure.scrub({ traces: ['"name":"ADA"'], rewriteBytes: 0 });
  assert.deepEqual(large, { logEmptied: true, rewritten: false, tracesLeft: true });
  const there = await store.erasure.scrub({ traces: ['"name":"Ada"'], rewriteBytes: 1e9 });
  assert.deepEqual(there, { logEmptied: true, rewritten: true, tracesLeft: true });
  await publishRun(store, at, { a: 'Ada' });
  assert.deepEqual(await readVersion(store, { ...at, version: 2 }), [{ id: 'a', name: 'Ada' }]);
});

test('does not scrub once the store is closed, when another process may own the file', async (t) => {
  const { store } = await openEmptyStore(t);
  await store.close();
  await assert.rejects(store.erasure.scrub({ traces: [], rewriteBytes: 0 }), { code: 'stopping' });
});
