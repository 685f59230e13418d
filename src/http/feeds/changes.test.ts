/** The search for the changes of a feed has a time limit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../model/error.ts';
import { openEmptyStore } from '../../store/conformance/empty-store.ts';
import { makeWorkflow, publishRun } from '../../store/conformance/setup.ts';
import type { OpenedFeed } from '../../store/operations/feeds/addresses.ts';
import { examinerHere } from '../../webhooks/rules/examiner.ts';
import { asReaderSees, documentOf } from './changes.ts';

const URLS = { atom: 'http://a.test/f.atom', json: 'http://a.test/f.json', html: 'http://a.test/f' };
/** Takes milliseconds for each record. */
const SLOW =
  '[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, record.name != "x")))';

async function setUp(t: Parameters<typeof openEmptyStore>[0]) {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  const settings = { title: null, entries: 'record', windowMs: 86_400_000, most: 2_000 } as const;
  const token = { hash: 'a', sealed: '' };
  await store.feeds.create({ ...at, ...settings, most: 200, filter: SLOW, token });
  const feed = (await store.feeds.open({ teamId: at.teamId, hash: 'a' })) as OpenedFeed;
  const examiner = await examinerHere({ store, reader: store, publicUrl: () => '' });
  const search = (searchMs: number, of = feed) => documentOf({ store, examiner, searchMs }, of, URLS);
  return { store, at, feed, search };
}

test('a search that runs out of time shows the newest changes, which it has found', async (t) => {
  const { store, at, search } = await setUp(t);
  const many = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`${n}`, `old ${n}`]));
  await publishRun(store, at, many);
  await publishRun(store, at, { ...many, 1: 'new' });
  const found = await search(60);
  assert.equal(found.entries[0]?.title, 'Changed: new');
});

test('a search that finds nothing in time fails', async (t) => {
  const { store, at, search } = await setUp(t);
  await publishRun(store, at, { a: 'Ada' });
  await assert.rejects(search(0), { code: 'field_invalid', message: /^The filter takes too long\./ });
});

test('readers get only temporary errors of a filter', () => {
  const slow = asReaderSees(new Problem('field_invalid', { sentence: 'The filter takes too long' }));
  assert.ok(slow instanceof Problem);
  assert.deepEqual([slow.code, slow.headers], ['overloaded', { 'retry-after': '3600' }]);
  assert.match(slow.message, /^The filter of this feed takes too long\. Its owner must/);
  const other = new Problem('database_unavailable');
  assert.equal(asReaderSees(other), other);
});
