/** What must be true of jobs at every moment, checked through the Store as any node could. */
import assert from 'node:assert/strict';
import { type AttemptLease, hasEnded, isWaiting, type Job } from '../../model/job.ts';
import type { Store } from '../store.ts';
import { type Opened, readVersion } from './setup.ts';

export interface Workflow {
  teamId: string;
  workflowId: string;
  takesPush: boolean;
  isArchived: boolean;
  /** Applies the workflow's definition again. */
  restore(): Promise<unknown>;
}

/** What the check knows about a store. */
export interface World {
  opened: Opened;
  store: Store;
  workflows: readonly Workflow[];
  nodes: { id: string; held: AttemptLease[] }[];
  /** Attempts that no node holds anymore; late reports from them may still arrive. */
  ghosts: AttemptLease[];
  /** The team of every job so far, by the job's id. */
  jobs: Map<string, string>;
  /** Ended jobs, as they were first found ended. */
  ended: Map<string, Job>;
  /** The types of the events of each job, in order. */
  events: Map<string, string[]>;
  /** The sequence of the last event that was read, by team. */
  seen: Map<string, number>;
  /** The records that were last published, by team and workflow. */
  published: Map<string, { version: number; records: unknown[] }>;
  /** The version up to which `checkRecords` has checked the jobs of versions, by team and workflow. */
  versionsChecked: Map<string, number>;
}

export function newWorld(opened: Opened, workflows: readonly Workflow[]): World {
  return {
    opened,
    store: opened.store,
    workflows,
    nodes: ['node-a', 'node-b'].map((id) => ({ id, held: [] })),
    ghosts: [],
    jobs: new Map(),
    ended: new Map(),
    events: new Map(),
    seen: new Map(),
    published: new Map(),
    versionsChecked: new Map(),
  };
}

export async function checkInvariants(world: World): Promise<void> {
  for (const teamId of new Set(world.workflows.map((at) => at.teamId))) {
    await readEvents(world, teamId);
    const jobs = await world.store.jobs.list({ teamId, limit: 1_000 });
    const expected = [...world.jobs].filter(([, owner]) => owner === teamId).map(([id]) => id);
    assert.deepEqual(jobs.map(({ id }) => id).sort(), expected.sort());
    checkSlots(jobs);
    await checkAgenda(world, teamId, jobs);
    for (const job of jobs) checkJob(world, job);
  }
  for (const at of world.workflows) if (!at.isArchived) await checkRecords(world, at);
}

async function readEvents({ store, jobs, events: seenEvents, seen }: World, teamId: string): Promise<void> {
  const after = seen.get(teamId) ?? 0;
  const events = await store.events.list({ teamId, afterSequence: after, limit: 1_000 });
  for (const [place, { jobId, type, sequence }] of events.entries()) {
    assert.equal(sequence, after + place + 1);
    if (jobId === null) continue;
    jobs.set(jobId, teamId);
    seenEvents.set(jobId, [...(seenEvents.get(jobId) ?? []), type]);
  }
  seen.set(teamId, after + events.length);
}

/** At most one job of a workflow runs, and a second one waits only behind the first. */
function checkSlots(jobs: readonly Job[]): void {
  const unfinished = jobs.filter(({ state }) => !hasEnded(state));
  for (const ofWorkflow of Map.groupBy(unfinished, (job) => job.workflowId).values()) {
    const slots = ofWorkflow.map(({ slot }) => slot).sort();
    assert.deepEqual(slots, slots.length === 2 ? [0, 1] : [0]);
    for (const { slot, state } of ofWorkflow) assert.ok(slot === 0 || state === 'queued');
  }
}

/** The agenda names a team no later than its first job that can start is due. */
async function checkAgenda({ store, workflows }: World, teamId: string, jobs: readonly Job[]): Promise<void> {
  const ofTeam = workflows.filter((at) => at.teamId === teamId);
  const found = await Promise.all(ofTeam.map(({ workflowId: id }) => store.workflows.get({ teamId, id })));
  const open = new Set(
    found.filter((one) => one?.pausedAt === null && one.archivedAt === null).map((one) => one?.id),
  );
  const first = jobs
    .filter(({ state, slot, workflowId }) => isWaiting(state) && slot === 0 && open.has(workflowId))
    .reduce((earliest, { runAt }) => Math.min(earliest, runAt), Number.POSITIVE_INFINITY);
  const listed = await store.agenda.due({ item: 'jobs', until: Number.MAX_SAFE_INTEGER, limit: 10_000 });
  const at = listed.find((one) => one.teamId === teamId)?.at ?? Number.POSITIVE_INFINITY;
  assert.ok(at <= first, `a job is due at ${first}, and its team at ${at}`);
}

/** A job has one outcome, with one event, which never changes. */
function checkJob(world: World, job: Job): void {
  const events = world.events.get(job.id) ?? [];
  const outcomes = events.filter((type) => /_(finished|failed|canceled)$/.test(type));
  assert.deepEqual(events.slice(0, 1), ['workflow_queued']);
  assert.equal(events.filter((type) => type === 'workflow_started').length, job.startedAt === null ? 0 : 1);
  if (!hasEnded(job.state)) {
    assert.deepEqual(outcomes, []);
    assert.ok(job.cancelRequestedAt === null || job.state === 'running');
    return;
  }
  assert.deepEqual(outcomes, [`workflow_${job.state}`]);
  assert.equal(events.at(-1), outcomes[0]);
  assert.equal(job.progress?.message ?? null, null);
  if (job.cancelRequestedAt !== null) assert.equal(job.state, 'canceled');
  const before = world.ended.get(job.id);
  if (before !== undefined) assert.deepEqual(job, before);
  world.ended.set(job.id, job);
}

/** Readers see only what was last published, and every version belongs to a finished job. */
async function checkRecords(world: World, at: Workflow): Promise<void> {
  const { store, published, ended, versionsChecked } = world;
  const key = `${at.teamId} ${at.workflowId}`;
  const { version, records } = published.get(key) ?? { version: 0, records: [] };
  assert.equal((await store.records.version(at))?.number, version);
  assert.deepEqual(await readVersion(store, { ...at, version }), records);
  if ((versionsChecked.get(key) ?? 0) === version) return;
  versionsChecked.set(key, version);
  const summaries = await store.records.versions({ ...at, limit: 100 });
  assert.equal(summaries.length, version);
  for (const { number, jobId } of summaries) {
    const job = ended.get(jobId);
    assert.deepEqual([job?.state, job?.version], ['finished', number]);
  }
}
