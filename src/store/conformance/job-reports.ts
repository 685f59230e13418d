/** Reports of runs in the model check of jobs: each must be accepted exactly while its attempt is running. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import { type AttemptLease, afterFailure } from '../../model/job.ts';
import type { World } from './job-invariants.ts';
import { jobOf, publish, stageRecords } from './setup.ts';

export const RETRIES = { max: 2, backoffMs: 1_000 };

/** Sends one report of a run, which must be refused exactly if its attempt is no longer running. */
export async function report(world: World, held: AttemptLease, b: number): Promise<void> {
  const before = await jobOf(world.store, held);
  const holds = before.state === 'running' && before.attempt === held.attempt;
  try {
    await (REPORTS[b % REPORTS.length] as (typeof REPORTS)[number])(world, held);
    assert.ok(holds, 'A report of an attempt that is no longer running was accepted');
  } catch (error) {
    if (!(error instanceof FencedError)) throw error;
    assert.ok(!holds, 'A report of a running attempt was refused');
  }
  const after = await jobOf(world.store, held);
  if (after.state !== 'running' || after.attempt !== held.attempt) forget(world, held);
}

export function forget(world: World, held: AttemptLease): void {
  for (const node of world.nodes) node.held = node.held.filter((other) => other !== held);
  if (!world.ghosts.includes(held)) world.ghosts.push(held);
}

const REPORTS = [published, published, failed, failedWithoutRetry, stage, endIfCanceled, reported, mark];
/** Indexes in `REPORTS`. */
export const PUBLISHES = REPORTS.indexOf(published);
export const ENDS_CANCELED = REPORTS.indexOf(endIfCanceled);

async function published(world: World, held: AttemptLease): Promise<void> {
  const { store } = world;
  const seqs = await stage(world, held);
  const current = await store.records.currentSeqs({ held, afterSeq: 0, rows: 100 });
  await store.records.remove({ held, seqs: current.seqs.filter((seq) => !seqs.includes(seq)) });
  const result = await publish(store, held);
  const job = await jobOf(store, held);
  if (result.outcome !== 'published') {
    assert.deepEqual([result.outcome, job.state], ['canceled', 'canceled']);
    return;
  }
  world.published.set(`${job.teamId} ${job.workflowId}`, {
    version: result.version,
    records: [recordOf(held)],
  });
}

/** Writes the one record of the workflow, which names the attempt that wrote it. */
async function stage({ store }: World, held: AttemptLease): Promise<number[]> {
  while (!(await store.records.sweep({ held, limit: 2 })).done);
  return stageRecords(store, held, 'replace', [{ id: 'a', body: JSON.stringify(recordOf(held)) }]);
}

function recordOf({ jobId, attempt }: AttemptLease) {
  return { id: 'a', by: `${jobId} ${attempt}` };
}

async function failed({ store }: World, held: AttemptLease): Promise<void> {
  const { failures } = await jobOf(store, held);
  const now = { failures: failures + 1, nowMs: store.now(), random: 0.5 };
  const then = afterFailure({ reason: 'error', retries: RETRIES, ...now });
  await store.jobs.fail({ held, reason: 'error', error: 'It failed', failures: failures + 1, then });
}

async function failedWithoutRetry({ store }: World, held: AttemptLease): Promise<void> {
  const then = { state: 'failed' } as const;
  await store.jobs.fail({ held, reason: 'timeout', error: 'It took too long', failures: 1, then });
}

async function endIfCanceled(world: World, held: AttemptLease): Promise<void> {
  const { cancelRequestedAt } = await jobOf(world.store, held);
  if (cancelRequestedAt === null) return reported(world, held);
  return world.store.jobs.endCanceled({ held });
}

async function reported({ store }: World, held: AttemptLease): Promise<void> {
  const progress = { records: 1, bytes: 1, pages: null, message: 'Working' };
  const lines = [{ seq: 1, at: store.now(), level: 'info' as const, text: 'Working' }];
  await store.jobs.report({ held, progress, lines });
}

async function mark({ store }: World, held: AttemptLease): Promise<void> {
  await store.jobs.setProcess({ held, process: { pid: 1, startedAt: '1' } });
}
