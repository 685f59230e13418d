/** The cache of small bodies, with a store that counts reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RecordPage } from '../store/operations/records.ts';
import type { Body, VersionReader } from './read.ts';
import { SmallBodyCache } from './small-body.ts';

const MIB = 1_048_576;

function setUp({ bytes = 20, maxBytes = 1_024 * MIB } = {}) {
  const json = Buffer.from(`[{"id":"${'x'.repeat(bytes - 10)}"}`);
  const made = { pages: 0, before: () => {} };
  const version = {
    number: 1,
    oldest: 0,
    versions: 1,
    erasures: 0,
    total: 1,
    largest: bytes,
    bytes,
    fields: ['id'],
    publishedAt: 0,
  };
  const store: VersionReader = {
    records: {
      page: async (): Promise<RecordPage> => {
        made.pages += 1;
        made.before();
        return { json, count: 1, lastSeq: 1, done: true };
      },
      version: async () => version,
    },
  };
  const of = (workflowId: string): Body => ({
    place: { teamId: 't', workflowId },
    version,
    format: 'json',
    encoding: 'identity',
  });
  return { bodies: new SmallBodyCache(store, maxBytes), of, made, body: `${json}]` };
}

test('reads a body from the database once, until its workflow is forgotten', async () => {
  const { bodies, of, made, body } = setUp();
  assert.equal(String(await bodies.read(of('a'))), body);
  assert.equal(String(await bodies.read(of('a'))), body);
  assert.equal(made.pages, 1);
  bodies.forget({ teamId: 't', workflowId: 'b' });
  await bodies.read(of('a'));
  assert.equal(made.pages, 1);
  bodies.forget({ teamId: 't', workflowId: 'a' });
  await bodies.read(of('a'));
  assert.equal(made.pages, 2);
});

test('does not cache a body that was being read while records were erased', async () => {
  const { bodies, of, made, body } = setUp();
  made.before = () => bodies.forget({ teamId: 't', workflowId: 'a' });
  assert.equal(String(await bodies.read(of('a'))), body);
  made.before = () => {};
  await bodies.read(of('a'));
  assert.equal(made.pages, 2);
});

test('limits the total, and evicts the least recently read body first', async () => {
  const { bodies, of, made } = setUp({ bytes: MIB });
  for (let n = 0; n < 15; n++) await bodies.read(of(`w${n}`));
  await bodies.read(of('w0'));
  assert.equal(made.pages, 15);
  await bodies.read(of('w15'));
  await bodies.read(of('w0'));
  assert.equal(made.pages, 16);
  await bodies.read(of('w1'));
  assert.equal(made.pages, 17);
});

test('caches nothing with a limit of 0', async () => {
  const { bodies, of, made, body } = setUp({ maxBytes: 0 });
  for (const pages of [1, 2]) {
    assert.equal(String(await bodies.read(of('a'))), body);
    assert.equal(made.pages, pages);
  }
});

test('counts the overhead of each entry, which limits tiny bodies', async () => {
  const { bodies, of, made } = setUp({ maxBytes: 20 * 1_024 });
  for (let n = 0; n < 25; n++) await bodies.read(of(`w${n}`));
  await bodies.read(of('w24'));
  assert.equal(made.pages, 25);
  await bodies.read(of('w0'));
  assert.equal(made.pages, 26);
});
