/**
 * Random runs against a model: whatever a run stages, in whatever batches and however often it is cut off, every
 * version must hold exactly what the model holds. Deterministic for a seed, which a failure prints.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Held } from '../../model/job.ts';
import { MODES, type Mode } from '../../model/workflow.ts';
import type { Store } from '../store.ts';
import { caseWith, claimOne, failAttempt, makeJob, makeWorkflow, type Open, readVersion } from './setup.ts';

/** One job: attempts that are cut off, then one that publishes. */
interface Run {
  mode: Mode;
  lost: Attempt[];
  last: Attempt;
}

interface Attempt {
  batches: { id: string; name: number }[][];
  /** How an attempt that does not publish ends, and whether it had begun to remove. */
  end: 'release' | 'reclaim' | 'fail';
  removes: boolean;
}

const record = fc.record({ id: fc.constantFrom(...'abcdefgh'), name: fc.integer({ min: 0, max: 2 }) });
const attempt: fc.Arbitrary<Attempt> = fc.record({
  batches: fc.array(fc.array(record, { maxLength: 6 }), { maxLength: 4 }),
  end: fc.constantFrom('release', 'reclaim', 'fail'),
  removes: fc.boolean(),
});
const run: fc.Arbitrary<Run> = fc.record({
  mode: fc.constantFrom(...MODES),
  lost: fc.array(attempt, { maxLength: 2 }),
  last: attempt,
});

export function testRandomRuns(open: Open): void {
  const it = caseWith(open);

  it('holds in every version what a simple model holds', async ({ store }) => {
    let workflows = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(run, { minLength: 1, maxLength: 6 }), async (runs) => {
        const at = await makeWorkflow(store, { id: `w${workflows++}` });
        const versions = [new Map<string, string>()];
        for (const job of runs) await perform(store, at, job, versions);
        for (const [version, expected] of versions.entries()) {
          const found = await readVersion(store, { ...at, version });
          assert.deepEqual(
            found.map((body) => JSON.stringify(body)),
            [...expected.values()],
          );
        }
      }),
      { numRuns: 60 },
    );
  });
}

/** Runs one job in the store and in the model, and compares what publishing says. */
async function perform(
  store: Store,
  at: { teamId: string; workflowId: string },
  { mode, lost, last }: Run,
  versions: Map<string, string>[],
): Promise<void> {
  const before = versions.at(-1) ?? new Map<string, string>();
  await makeJob(store, at);
  for (const attempt of lost) {
    const held = await claimOne(store);
    await write(store, held, mode, attempt, attempt.removes);
    if (attempt.end === 'release') await store.jobs.release({ held: [held] });
    else if (attempt.end === 'reclaim') await store.jobs.reclaim({ held, error: 'gone' });
    else await failAttempt(store, held, { follows: { state: 'retrying', runAt: store.now() } });
  }
  const held = await claimOne(store);
  await write(store, held, mode, last, true);
  const published = await store.records.publish({
    held,
    guards: { minRecords: 0, maxDropPercent: null },
    state: undefined,
  });

  const after = modelRun(before, mode, last.batches.flat());
  const counts = compare(before, after);
  const changed = counts.added + counts.changed + counts.removed > 0;
  if (changed) versions.push(after);
  assert.deepEqual(published, {
    outcome: changed ? 'published' : 'unchanged',
    version: versions.length - 1,
    records: counts,
  });
  assert.equal((await store.records.version(at))?.total, after.size);
}

/** What ingest does: sweep, stage batch by batch, remove what a replacing run has not seen. */
async function write(
  store: Store,
  held: Held,
  mode: Mode,
  { batches }: Attempt,
  removes: boolean,
): Promise<void> {
  while (!(await store.records.sweep({ held, limit: 3 })).done);
  const seen = new Set<number>();
  for (const batch of batches) {
    const records = batch.map((entry) => ({ id: entry.id, body: JSON.stringify(entry) }));
    const { seqs } = await store.records.stage({ held, mode, records });
    for (const seq of seqs) seen.add(seq);
  }
  if (mode !== 'replace' || !removes) return;
  const current = await store.records.currentSeqs({ held, afterSeq: 0, limit: 100 });
  await store.records.remove({ held, seqs: current.filter((seq) => !seen.has(seq)) });
}

/** The model of a version: JSON text by id, in the order of first appearance. */
function modelRun(before: Map<string, string>, mode: Mode, records: { id: string; name: number }[]) {
  const after = new Map(before);
  for (const entry of records) {
    if (mode === 'append' && after.has(entry.id)) continue;
    after.set(entry.id, JSON.stringify(entry));
  }
  const seen = new Set(records.map((entry) => entry.id));
  if (mode === 'replace') for (const id of before.keys()) if (!seen.has(id)) after.delete(id);
  return after;
}

function compare(before: Map<string, string>, after: Map<string, string>) {
  const added = [...after.keys()].filter((id) => !before.has(id)).length;
  const changed = [...after].filter(([id, body]) => before.has(id) && before.get(id) !== body).length;
  const removed = [...before.keys()].filter((id) => !after.has(id)).length;
  return { total: after.size, added, changed, removed };
}
