/** Ingests into a real store, with the real thread. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type TestContext, test } from 'node:test';
import { FencedError } from '../model/error.ts';
import type { AttemptLease } from '../model/job.ts';
import { InvalidRecordError } from '../model/record.ts';
import { DEFAULT_LIMITS, type Definition } from '../model/workflow.ts';
import { silentLogger } from '../observe/log.ts';
import {
  definition,
  failAttempt,
  makeRunning,
  makeWorkflow,
  readVersion,
} from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { Published } from '../store/operations/publish.ts';
import type { Store } from '../store/store.ts';
import { type Ingested, ingest, removeUnseen, SeenSet } from './ingest.ts';
import { type SkippedRecord, TooManyRecordsError } from './ingest-batch.ts';
import { Ingester } from './ingester.ts';

interface Bench {
  store: Store;
  ingester: Ingester;
  at: { teamId: string; workflowId: string };
  /** Ingests for a claimed attempt. */
  bring(
    held: AttemptLease,
    lines: AsyncIterable<string[]> | string[],
    changes?: Partial<Definition>,
  ): Promise<Ingested>;
  /** Runs a job from queueing to publishing. */
  run(lines: string[], changes?: Partial<Definition>): Promise<{ ingested: Ingested; published: Published }>;
  records(version: number): Promise<unknown[]>;
}

async function bench(t: TestContext, onSkipped = (_: SkippedRecord) => {}): Promise<Bench> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-ingest-'));
  const databaseUrl = `sqlite:${join(directory, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const ingester = new Ingester({ databaseUrl, log: silentLogger });
  t.after(async () => {
    await ingester.close();
    await store.close();
    await rm(directory, { recursive: true });
  });
  const at = await makeWorkflow(store);
  const bring: Bench['bring'] = (held, lines, changes = {}) =>
    ingest(
      { store, ingester, onSkipped },
      {
        held,
        workflowId: at.workflowId,
        definition: definition(changes),
        lines: Array.isArray(lines) ? inBatches(lines) : lines,
      },
    );
  return {
    store,
    ingester,
    at,
    bring,
    async run(lines, changes = {}) {
      const held = await makeRunning(store, at);
      const ingested = await bring(held, lines, changes);
      const { mode } = definition(changes);
      if (mode === 'replace') await removeUnseen(store, held, ingested.seen);
      const published = await store.records.publish({
        held,
        state: undefined,
        fields: ingested.fields,
        mode,
      });
      return { ingested, published };
    },
    records: (version) => readVersion(store, { ...at, version }, 500),
  };
}

async function* inBatches(lines: string[]): AsyncGenerator<string[]> {
  for (let start = 0; start < lines.length; start += 500) yield lines.slice(start, start + 500);
}

async function* oneByOne(lines: string[]): AsyncGenerator<string[]> {
  for (const line of lines) yield [line];
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `{"id":${n}}`);
}

test('publishes all records in order, and nothing if a run repeats them', async (t) => {
  const { run, records } = await bench(t);
  const limits = { ...DEFAULT_LIMITS, records: 3_000 };
  const lines = Array.from({ length: 2_345 }, (_, n) => `{"id":${n},"name":"Number ${n}"}`);
  const first = await run(lines, { limits });
  assert.deepEqual(first.published, {
    outcome: 'published',
    version: 1,
    records: { total: 2_345, added: 2_345, changed: 0, removed: 0 },
  });
  assert.deepEqual(
    await records(1),
    lines.map((_, n) => ({ id: String(n), name: `Number ${n}` })),
  );
  const again = await run(lines, { limits });
  assert.equal(again.published.outcome, 'unchanged');
  assert.deepEqual([again.ingested.records, again.ingested.duplicates], [2_345, 0]);
});

test('keeps the last record of an id that the next batch repeats while the first is being written', async (t) => {
  const { run, records } = await bench(t);
  // Every batch has 250 records. The last ids of a batch are the first ids of the next batch.
  const ids = Array.from({ length: 1_000 }, (_, n) => (n % 250 < 5 && n >= 250 ? n - 5 - (n % 250) : n));
  const lines = ids.map((id, n) => `{"id":${id},"n":${n}}`);
  for (const expected of ['published', 'unchanged']) {
    const { ingested, published } = await run(lines);
    assert.equal(published.outcome, expected);
    assert.deepEqual([ingested.records, ingested.duplicates], [1_000, 15]);
    const last = new Map(ids.map((id, n) => [String(id), n]));
    assert.deepEqual(
      await records(1),
      [...last].map(([id, n]) => ({ id, n })),
    );
  }
});

test('writes nothing after a later batch was rejected', async (t) => {
  const { bring, store, at, records, run } = await bench(t);
  const held = await makeRunning(store, at);
  const lines = [...numbered(400), '{"id":null}', ...numbered(300)];
  await assert.rejects(bring(held, lines), InvalidRecordError);
  await failAttempt(store, held);
  assert.equal((await run(['{"id":"x"}'])).published.outcome, 'published');
  assert.deepEqual(await records(1), [{ id: 'x' }]);
});

test('counts duplicates within a batch, across batches, and of unchanged records', async (t) => {
  const { run, records } = await bench(t);
  const first = await run([
    '{"id":1,"v":1}',
    '{"id":2}',
    ...numbered(600).slice(3),
    '{"id":1,"v":2}',
    '{"id":1,"v":3}',
  ]);
  assert.equal(first.ingested.duplicates, 2);
  assert.deepEqual((await records(1)).slice(0, 2), [{ id: '1', v: 3 }, { id: '2' }]);

  // In the second run, the first record of each id equals the published one, so that nothing is written for it.
  const again = await run([
    '{"id":1,"v":3}',
    '{"id":2}',
    ...numbered(600).slice(3),
    '{"id":2}',
    '{"id":2}',
    '{"id":1,"v":4}',
  ]);
  assert.equal(again.ingested.duplicates, 3);
  assert.deepEqual((await records(2))[0], { id: '1', v: 4 });
});

test('leaves existing records unchanged in append mode, and counts them', async (t) => {
  const { run, records } = await bench(t);
  await run(['{"id":1,"v":1}'], { mode: 'append' });
  const { ingested } = await run(['{"id":2,"v":1}', '{"id":1,"v":2}', '{"id":2,"v":2}', '{"id":1}'], {
    mode: 'append',
  });
  assert.deepEqual([ingested.existing, ingested.duplicates], [1, 2]);
  assert.deepEqual(await records(2), [
    { id: '1', v: 1 },
    { id: '2', v: 1 },
  ]);
});

test('collects field names in order of first appearance, at most 1,000', async (t) => {
  const { run, store, at } = await bench(t);
  const { ingested } = await run(['{"b":1,"id":1}', '{"id":2,"a":1,"b":2}', '{"id":3,"name":null}']);
  assert.deepEqual(ingested.fields, ['id', 'b', 'a']);
  assert.deepEqual((await store.records.version(at))?.fields, ['id', 'b', 'a']);

  const many = Array.from({ length: 5 }, (_, n) => {
    const fields = Array.from({ length: 300 }, (_, place) => [`f${n}-${place}`, 1]);
    return JSON.stringify({ id: n, [`${n}${'long'.repeat(100)}`]: 1, ...Object.fromEntries(fields) });
  });
  const bounded = await run(many);
  assert.equal(bounded.ingested.fields.length, 1_000);
  assert.ok(bounded.ingested.fields.every((name) => name.length < 10));
});

test('fails at the first invalid record, with its position, field and reason', async (t) => {
  const { bring, store, at } = await bench(t);
  const held = await makeRunning(store, at);
  await assert.rejects(
    bring(held, [...numbered(700), '{"id":9,"email":[]}', 'nonsense']),
    (error: Error) =>
      error instanceof InvalidRecordError &&
      error.field === 'email' &&
      /^Record 701 is invalid: the field `email` must be a string/.test(error.message),
  );
});

test('skips invalid records with `onInvalid: skip`, counts them and reports the first', async (t) => {
  const skipped: SkippedRecord[] = [];
  const { run, records } = await bench(t, (one) => skipped.push(one));
  const bad = Array.from({ length: 700 }, () => '{"id":1,"name":{}}');
  const { ingested } = await run(['{"id":1}', '{"name":"nobody"}', ...bad, '{"id":2}'], {
    onInvalid: 'skip',
  });
  assert.deepEqual([ingested.records, ingested.skipped, ingested.duplicates], [703, 701, 0]);
  assert.deepEqual(await records(1), [{ id: '1' }, { id: '2' }]);
  assert.equal(skipped.length, 10);
  const [first, second] = skipped;
  assert.deepEqual([first?.position, first?.field], [2, 'id']);
  assert.match(first?.reason ?? '', /is missing/);
  assert.deepEqual([second?.position, second?.field], [3, 'name']);
});

test('accepts exactly as many records as the limit', async (t) => {
  const { bring, store, at } = await bench(t);
  const held = await makeRunning(store, at);
  const limits = { ...DEFAULT_LIMITS, records: 600 };
  await assert.rejects(
    bring(held, numbered(601), { limits }),
    (error: Error) => error instanceof TooManyRecordsError && /more than 600 records/.test(error.message),
  );
  assert.equal((await bring(held, numbered(600), { limits })).records, 600);
});

test('fences a run that no longer holds its job', async (t) => {
  const { bring, store, at } = await bench(t);
  const held = await makeRunning(store, at);
  async function* lines() {
    yield ['{"id":1}'];
    await failAttempt(store, held);
    yield ['{"id":2}'];
  }
  await assert.rejects(bring(held, lines()), FencedError);
});

test('several runs share the thread', async (t) => {
  const { store, ingester } = await bench(t);
  const workflowIds = ['a', 'b', 'c'];
  const runs = await Promise.all(
    workflowIds.map(async (id) => makeRunning(store, await makeWorkflow(store, { id }))),
  );
  const turns: number[] = [];
  async function* lines(run: number) {
    for (const batch of [1, 2, 3, 4]) {
      turns.push(run);
      yield numbered(500).map((line) => line.replace('{', `{"n":${batch},`));
    }
  }
  const limits = { ...DEFAULT_LIMITS, records: 2_000 };
  const brought = await Promise.all(
    runs.map((held, run) =>
      ingest(
        { store, ingester, onSkipped: () => {} },
        {
          held,
          workflowId: workflowIds[run] as string,
          definition: definition({ limits }),
          lines: lines(run),
        },
      ),
    ),
  );
  assert.deepEqual(
    brought.map(({ records, duplicates }) => [records, duplicates]),
    [
      [2_000, 1_500],
      [2_000, 1_500],
      [2_000, 1_500],
    ],
  );
  // No run waits until another has sent all of its records.
  assert.deepEqual(turns.slice(0, 6).toSorted(), [0, 0, 1, 1, 2, 2]);
});

test('parses nothing on the event loop', async (t) => {
  const { bring, store, at } = await bench(t);
  const held = await makeRunning(store, at);
  const list = JSON.stringify(Array.from({ length: 100_000 }, (_, n) => n));
  const lines = Array.from(
    { length: 24 },
    (_, n) => `{"id":${n},"list":${list},"text":"${'x'.repeat(400_000)}"}`,
  );
  const parse = t.mock.method(JSON, 'parse');
  const write = t.mock.method(JSON, 'stringify');
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  assert.equal((await bring(held, oneByOne(lines))).records, 24);
  delay.disable();
  t.diagnostic(`event loop delay: ${(delay.max / 1e6).toFixed(1)} ms at most, for 24 records of 1 MiB`);
  assert.equal(parse.mock.callCount() + write.mock.callCount(), 0);
});

test('does not block the event loop while searching for unseen records', async (t) => {
  const { bring, store, at } = await bench(t);
  const held = await makeRunning(store, at);
  const limits = { ...DEFAULT_LIMITS, records: 10_000 };
  const { fields } = await bring(held, numbered(10_000), { limits });
  await store.records.publish({ held, state: undefined, fields });

  const next = await makeRunning(store, at);
  let turns = 0;
  let turn = setImmediate(function again() {
    turns += 1;
    turn = setImmediate(again);
  });
  const { seqs } = await store.records.currentSeqs({ held: next, afterSeq: 0, rows: 9_999 });
  const seen = new SeenSet();
  for (const seq of seqs) seen.add(seq);
  await removeUnseen(store, next, seen).finally(() => clearImmediate(turn));
  assert.ok(turns >= 10, `others had ${turns} turns`);

  await removeUnseen(store, next, new SeenSet());
  const left = await store.records.currentSeqs({ held: next, afterSeq: 0, rows: 20_000 });
  assert.deepEqual([left.seqs, left.done], [[], true]);
});
