/**
 * Random runs and prunings, compared with `version-model.ts`: for any writes, in any batches, and for any interruption of
 * a run or a pruning, every readable version must contain exactly the records of the model. Each call uses another seed;
 * a failure prints the seed, with the fewest steps that fail.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { AttemptLease } from '../../model/job.ts';
import { MODES, type Mode } from '../../model/workflow.ts';
import type { Retention } from '../operations/versions.ts';
import type { Store } from '../store.ts';
import {
  caseWith,
  claimOne,
  failAttempt,
  makeJob,
  makeWorkflow,
  type Open,
  type Opened,
  publish,
  readChanges,
  readVersion,
  stageRecords,
} from './setup.ts';
import {
  afterRun,
  bytesOf,
  changesBetween,
  changesOf,
  countChanges,
  type Model,
  neededRows,
  newModel,
  olderBytes,
  oldestKept,
  versionAt,
} from './version-model.ts';

type Step =
  | { kind: 'run'; run: Run }
  | { kind: 'prune'; prune: Pruning }
  | { kind: 'wait'; ms: number }
  | { kind: 'erase'; id: string };

/** One job: attempts that are interrupted, then one that publishes or fails without a retry. */
interface Run {
  mode: Mode;
  lost: Attempt[];
  last: Attempt;
  publishes: boolean;
}

interface Attempt {
  batches: { id: string; name: string }[][];
  /** The number of operations after which the attempt is interrupted, unless it is the last one. */
  cutAfter: number;
  end: 'release' | 'reclaim' | 'fail';
  reopens: boolean;
  /** A pruning between two of its operations. */
  prune: (Pruning & { before: number }) | null;
}

interface Pruning {
  keep: Retention;
  /** The number of calls after which the pruning is interrupted. */
  calls: number;
}

const MINUTE_MS = 60_000;

const record = fc.record({ id: fc.constantFrom(...'abcdefgh'), name: fc.constantFrom('a', 'b', 'äö😀') });
const pruning: fc.Arbitrary<Pruning> = fc.record({
  keep: fc.record({
    keepVersions: fc.integer({ min: 1, max: 4 }),
    keepMs: fc.constantFrom(0, 2, 1_000).map((minutes) => minutes * MINUTE_MS),
    graceMs: fc.constantFrom(0, 0, 1, 3).map((minutes) => minutes * MINUTE_MS),
  }),
  calls: fc.constantFrom(1, 2, 1_000),
});
const attempt: fc.Arbitrary<Attempt> = fc.record({
  batches: fc.array(fc.array(record, { maxLength: 6 }), { maxLength: 4 }),
  cutAfter: fc.nat({ max: 12 }),
  end: fc.constantFrom('release', 'reclaim', 'fail'),
  reopens: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
  prune: fc.option(
    fc.tuple(pruning, fc.nat({ max: 8 })).map(([prune, before]) => ({ ...prune, before })),
    { freq: 3 },
  ),
});
const run: fc.Arbitrary<Run> = fc.record({
  mode: fc.constantFrom(...MODES),
  lost: fc.array(attempt, { maxLength: 2 }),
  last: attempt,
  publishes: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('run' as const), run }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('prune' as const), prune: pruning }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase' as const), id: fc.constantFrom('a', 'b') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(MINUTE_MS, 3 * MINUTE_MS),
    }),
  },
);

export function testRecordModel(open: Open, runs: number): void {
  const it = caseWith(open);

  it('contains in every readable version what a simple model contains', async (opened) => {
    const world: World = {
      opened,
      store: opened.store,
      at: { teamId: '', workflowId: '' },
      model: newModel(),
    };
    let workflows = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        world.at = await makeWorkflow(world.store, { id: `w${workflows++}` });
        world.model = newModel();
        for (const each of steps) {
          if (each.kind === 'run') await perform(world, each.run);
          else if (each.kind === 'prune') await prune(world, each.prune);
          else if (each.kind === 'erase') await erase(world, each.id);
          else opened.advance(each.ms);
          await compareVersions(world);
        }
        await compareChanges(world);
        for (const id of 'abcdefgh') await compareHistory(world, id);
      }),
      { numRuns: runs },
    );
  });
}

interface World {
  opened: Opened;
  store: Store;
  at: { teamId: string; workflowId: string };
  model: Model;
}

/** Runs one job in the store and in the model, and compares the results of publishing. */
async function perform(world: World, { mode, lost, last, publishes }: Run): Promise<void> {
  const { at, model } = world;
  await makeJob(world.store, at);
  for (const each of lost) {
    const held = await claimOne(world.store);
    await write(world, held, mode, each, each.cutAfter);
    if (each.reopens) world.store = await world.opened.reopen();
    const { store } = world;
    if (each.end === 'release') await store.jobs.release({ held: [held] });
    else if (each.end === 'reclaim') await store.jobs.reclaim({ held, nodeId: 'node-a', error: 'gone' });
    else await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() } });
  }
  const held = await claimOne(world.store);
  await write(world, held, mode, last, publishes ? Number.POSITIVE_INFINITY : last.cutAfter);
  if (!publishes) return failAttempt(world.store, held);
  const published = await publish(world.store, held);

  const before = model.versions.at(-1) ?? new Map();
  const after = afterRun(before, mode, last.batches.flat());
  const records = countChanges(before, after);
  const changed = records.added + records.changed + records.removed > 0;
  if (changed) {
    model.versions.push(after);
    model.publishedAt.push(world.store.now());
  }
  assert.deepEqual(published, {
    outcome: changed ? 'published' : 'unchanged',
    version: model.versions.length - 1,
    records,
  });
}

/** Writes as ingest does, up to the operation at which it is interrupted. */
async function write(
  world: World,
  held: AttemptLease,
  mode: Mode,
  { batches, prune: pruning }: Attempt,
  cutAfter: number,
): Promise<void> {
  const { store } = world;
  let operations = 0;
  const next = async (): Promise<boolean> => {
    if (pruning?.before === operations) await prune(world, pruning);
    return operations++ < cutAfter;
  };
  do if (!(await next())) return;
  while (!(await store.records.sweep({ held, limit: 3 })).done);
  const seen = new Set<number>();
  for (const batch of batches) {
    if (!(await next())) return;
    const records = batch.map((entry) => ({ id: entry.id, body: JSON.stringify(entry) }));
    for (const seq of await stageRecords(store, held, mode, records)) seen.add(seq);
    await compareCounts(world);
  }
  if (mode !== 'replace') return;
  const current = await store.records.currentSeqs({ held, afterSeq: 0, rows: 100 });
  const unseen = current.seqs.filter((seq) => !seen.has(seq));
  for (let start = 0; start < unseen.length; start += 2) {
    if (!(await next())) return;
    await store.records.remove({ held, seqs: unseen.slice(start, start + 2) });
    await compareCounts(world);
  }
}

/** The counts made while writing must equal those that publishing would compute. */
async function compareCounts({ opened, at }: World): Promise<void> {
  const { counted, found } = await opened.inspect(at);
  assert.deepEqual(counted, found);
}

async function prune({ opened, store, at, model }: World, { keep, calls }: Pruning): Promise<void> {
  const expected = oldestKept(model, store.now(), keep);
  const due = async () =>
    (await store.records.prunable({ teamId: at.teamId, ...keep, limit: 1_000 })).found.some(
      ({ workflowId }) => workflowId === at.workflowId,
    );
  if (expected > model.oldest) assert.ok(await due());
  let done = false;
  for (let call = 0; call < calls && !done; call++) {
    ({ done } = await store.records.prune({ ...at, ...keep, limit: 2 }));
    const oldest = (await store.records.version(at))?.oldest ?? -1;
    assert.ok(oldest >= model.oldest && oldest <= expected);
    model.oldest = oldest;
  }
  if (!done) return;
  assert.equal(model.oldest, expected);
  assert.equal(await due(), false);
  const { rows, versions } = await opened.inspect(at);
  assert.deepEqual([rows, versions], [neededRows(model), model.versions.length - Math.max(1, model.oldest)]);
}

/** Erases a record, unless anything was pruned: the counts of the oldest version may then differ from the model's. */
async function erase({ store, at, model }: World, id: string): Promise<void> {
  if (model.oldest > 0) return;
  const seqs = new Set<number>();
  for (let after: string | null = null; ; ) {
    const found: Awaited<ReturnType<Store['erasure']['scanRecords']>> = await store.erasure.scanRecords({
      ...at,
      needles: [],
      ids: [id],
      after,
    });
    for (const { seq } of found.rows) seqs.add(seq);
    after = found.next;
    if (after === null) break;
  }
  await store.erasure.remove({ ...at, seqs: [...seqs] });
  for (const state of model.versions) state.delete(id);
}

/** Compares every version, and the changes from each to the current one. */
async function compareVersions(world: World): Promise<void> {
  const { store, opened, at, model } = world;
  const current = model.versions.length - 1;
  const { counted, found } = await opened.inspect(at);
  assert.deepEqual([counted.bytes, found.bytes], [bytesOf(model), bytesOf(model)]);
  const overview = await store.jobs.summaries({ teamId: at.teamId, workflowIds: [at.workflowId] });
  const history = overview.get(at.workflowId)?.history;
  const versions = current - Math.max(1, model.oldest) + 1;
  assert.deepEqual([history?.versions, history?.bytes], [versions, olderBytes(model)]);
  const summaries = await store.records.versions({ ...at, limit: 100 });
  assert.equal(summaries.length, versions);
  for (const [version, state] of model.versions.entries()) {
    const found = await store.records.version({ ...at, number: version });
    if (version < model.oldest) {
      assert.equal(found, undefined);
      continue;
    }
    assert.deepEqual([found?.number, found?.oldest, found?.total], [version, model.oldest, state.size]);
    const bodies = (await readVersion(store, { ...at, version })).map((body) => JSON.stringify(body));
    assert.deepEqual(bodies, [...state.values()]);
    const before = model.versions[version - 1];
    const summary = summaries[current - version];
    if (before !== undefined) {
      assert.equal(summary?.number, version);
      assert.equal(summary?.publishedAt, model.publishedAt[version]);
      assert.deepEqual(summary?.records, countChanges(before, state));
    }
    await compareChange(world, version, current);
  }
}

/** Compares the changes of one record, read two at a time, and the versions of all times. */
async function compareHistory({ store, at, model }: World, recordId: string): Promise<void> {
  const found: unknown[] = [];
  for (let before: number | undefined; ; ) {
    const page = await store.records.recordChanges({ ...at, recordId, before, limit: 2 });
    assert.ok(page.rows.length <= 2);
    found.push(...page.rows.map(({ jobId: _, ...change }) => change));
    if (page.next === null) break;
    before = page.next;
  }
  assert.deepEqual(found, changesOf(model, recordId));
  for (const publishedAt of model.publishedAt) {
    for (const time of [publishedAt - 1, publishedAt]) {
      assert.equal(await store.records.versionAt({ ...at, at: time }), versionAt(model, time));
    }
  }
}

/** Compares the changes between any two versions. */
async function compareChanges(world: World): Promise<void> {
  const { oldest, versions } = world.model;
  for (let since = oldest; since < versions.length; since++) {
    for (let until = since; until < versions.length; until++) await compareChange(world, since, until);
  }
}

async function compareChange({ store, at, model }: World, since: number, until: number): Promise<void> {
  const changes = await readChanges(store, { ...at, since, until }, 2);
  assert.deepEqual(changes, changesBetween(model.versions, since, until));
}
