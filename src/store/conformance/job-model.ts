/**
 * A model check of jobs: two nodes, their operators and the clock take random steps; nodes forget their attempts, return
 * and report late. After every step `job-invariants.ts` checks everything, and at the end two healthy nodes must finish
 * every job. Each call uses another seed; a failure prints the seed, with the fewest steps that fail.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type AttemptLease, hasEnded, type Job, LEASE_MS } from '../../model/job.ts';
import type { Schedule } from '../../model/workflow.ts';
import { checkInvariants, newWorld, type Workflow, type World } from './job-invariants.ts';
import { ENDS_CANCELED, forget, PUBLISHES, RETRIES, report } from './job-reports.ts';
import { CLAIM, caseWith, heldOf, jobOf, makeWorkflow, type Open, type Opened } from './setup.ts';

const STEPS = 60;

/**
 * Minimum time before a job counts as stuck. On PostgreSQL, claims skip a team for 2 s if the transaction of another
 * claim took too long, which can happen on a busy machine. The rounds of `settle` may take less time.
 */
const SETTLE_MS = 4_000;

const HOURLY: Schedule = { everyMs: 3_600_000, missed: 'run' };
/** Workflows with the settings that make a difference; the last workflow of a team receives pushes. */
const WORKFLOWS = [
  { team: 'a', id: 'reject', retries: RETRIES },
  { team: 'a', id: 'buffer', overlap: 'buffer', priority: 5 },
  { team: 'b', id: 'scheduled', overlap: 'buffer', schedule: HOURLY },
  { team: 'b', id: 'push', source: { type: 'push' } },
] as const;

export function testJobModel(open: Open, runs: number): void {
  caseWith(open)('ends every job exactly once under random actions of nodes, people and clocks', (opened) =>
    checkJobModel(opened, runs),
  );
}

async function checkJobModel(opened: Opened, runs: number): Promise<void> {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: STEPS, size: 'max' }), async (steps) => {
      run += 1;
      const world = newWorld(opened, await makeWorkflows(opened, run));
      try {
        for (const { kind, a, b } of steps) {
          await STEP_KINDS[kind].take(world, a, b);
          await checkInvariants(world);
        }
        await settle(world);
      } finally {
        // After a failure, waiting jobs would compete with those of the runs that look for fewer steps.
        for (const { teamId, workflowId } of world.workflows) {
          await world.store.workflows.archive({ teamId, ids: [workflowId] });
        }
      }
    }),
    { numRuns: runs },
  );
}

function makeWorkflows({ store }: Opened, run: number): Promise<Workflow[]> {
  return Promise.all(
    WORKFLOWS.map(async ({ team, ...settings }) => {
      const input = { ...settings, team: `${team}${run}`, nextRunAt: store.now() };
      const restore = () => makeWorkflow(store, input);
      return { ...(await restore()), restore, takesPush: settings.id === 'push', isArchived: false };
    }),
  );
}

type Take = (world: World, a: number, b: number) => Promise<void>;

const STEP_KINDS = {
  enqueue: { weight: 7, take: enqueue },
  push: { weight: 2, take: push },
  claim: { weight: 8, take: claim },
  report: { weight: 9, take: reportRun },
  reportLate: { weight: 4, take: reportLate },
  beat: { weight: 3, take: beat },
  cancel: { weight: 3, take: cancel },
  runNow: { weight: 1, take: runNow },
  release: { weight: 1, take: release },
  crash: { weight: 2, take: crash },
  reap: { weight: 3, take: reap },
  pause: { weight: 1, take: pause },
  resume: { weight: 2, take: resume },
  archive: { weight: 1, take: archive },
  fire: { weight: 2, take: fire },
  wait: { weight: 5, take: wait },
} satisfies Record<string, { weight: number; take: Take }>;

const step = fc.record({
  kind: fc.oneof(
    ...Object.entries(STEP_KINDS).map(([kind, { weight }]) => ({
      weight,
      arbitrary: fc.constant(kind as keyof typeof STEP_KINDS),
    })),
  ),
  /** Selects one of the existing things. */
  a: fc.nat({ max: 11 }),
  /** Selects a variant. */
  b: fc.nat({ max: 11 }),
});

function pick<Item>(items: readonly Item[], number: number): Item | undefined {
  return items[number % Math.max(1, items.length)];
}

async function enqueue({ store, workflows }: World, a: number): Promise<void> {
  const { teamId, workflowId } = pick(workflows, a) as Workflow;
  await store.jobs.enqueue({ teamId, workflowId, origin: 'api', idempotencyKey: null });
}

async function push({ store, workflows, nodes }: World, a: number): Promise<void> {
  const at = workflows.find(({ takesPush }) => takesPush) as Workflow;
  const node = pick(nodes, a) as World['nodes'][number];
  const { teamId, workflowId } = at;
  const begun = await store.jobs.begin({
    teamId,
    workflowId,
    nodeId: node.id,
    leaseMs: LEASE_MS,
    idempotencyKey: null,
  });
  if (begun.outcome === 'begun') node.held.push(heldOf(begun.claimed.job));
}

/** Claims on both nodes at the same moment. */
async function claim({ store, nodes }: World, _: number, b: number): Promise<void> {
  const limit = 1 + (b % 3);
  const results = await Promise.all(
    nodes.map(({ id }) => store.jobs.claim({ ...CLAIM, nodeId: id, limit, perTeam: 2 })),
  );
  for (const [n, claimed] of results.entries()) {
    assert.ok(claimed.length <= limit);
    nodes[n]?.held.push(...claimed.map(({ job }) => heldOf(job)));
  }
}

async function reportRun(world: World, a: number, b: number): Promise<void> {
  const held = pick(
    world.nodes.flatMap((node) => node.held),
    a,
  );
  if (held !== undefined) await report(world, held, b);
}

/** Sends reports of attempts that have ended, or whose node was considered dead. */
async function reportLate(world: World, a: number, b: number): Promise<void> {
  const held = pick(world.ghosts, a);
  if (held !== undefined) await report(world, held, b);
}

async function beat(world: World, a: number, b: number): Promise<void> {
  const node = pick(world.nodes, a) as World['nodes'][number];
  const held = [...node.held];
  const result = await world.store.jobs.beat({ nodeId: node.id, held, leaseMs: LEASE_MS });
  const jobs = await Promise.all(held.map((one) => jobOf(world.store, one)));
  const isHeld = (job: Job, { attempt }: AttemptLease) => job.state === 'running' && job.attempt === attempt;
  const lost = held.filter((one, n) => !isHeld(jobs[n] as Job, one));
  const canceled = held.filter((one, n) => {
    const job = jobs[n] as Job;
    return isHeld(job, one) && job.cancelRequestedAt !== null;
  });
  // PostgreSQL renews the leases of all teams at the same time, so the order of the result means nothing.
  assert.deepEqual(unordered(result), unordered({ lost, canceled }));
  for (const one of held) {
    if (lost.includes(one)) forget(world, one);
    else if (canceled.includes(one) && b % 2 === 0) await report(world, one, ENDS_CANCELED);
  }
}

function unordered(result: Record<string, readonly AttemptLease[]>): Record<string, string[]> {
  const names = Object.entries(result).map(([key, leases]) => [
    key,
    leases.map(({ jobId, attempt }) => `${jobId} ${attempt}`).sort(),
  ]);
  return Object.fromEntries(names);
}

async function cancel({ store, jobs }: World, a: number): Promise<void> {
  // Recent jobs are preferred.
  const [id, teamId] = pick([...jobs].reverse(), a) ?? [];
  if (id === undefined || teamId === undefined) return;
  const before = await jobOf(store, { teamId, jobId: id });
  const canceled = await store.jobs.cancel({ teamId, id, by: 'Canceled by a test' });
  const expected = hasEnded(before.state) ? 'ended' : before.state === 'running' ? 'canceling' : 'canceled';
  assert.equal(canceled?.outcome, expected);
}

async function runNow({ store, jobs }: World, a: number): Promise<void> {
  const [id, teamId] = pick([...jobs].reverse(), a) ?? [];
  if (id !== undefined && teamId !== undefined) await store.jobs.runNow({ teamId, id });
}

async function release(world: World, a: number): Promise<void> {
  const { held } = pick(world.nodes, a) as World['nodes'][number];
  // Released attempts may include lost ones.
  await world.store.jobs.release({ held: [...held, ...world.ghosts.slice(-2)] });
  for (const one of held) forget(world, one);
}

/** A node forgets its attempts, and either restarts immediately and sweeps, or leaves them to the reaper. */
async function crash(world: World, a: number, b: number): Promise<void> {
  const node = pick(world.nodes, a) as World['nodes'][number];
  for (const held of node.held) forget(world, held);
  if (b % 2 === 0) await reclaimAll(world, node.id);
}

async function reap(world: World): Promise<void> {
  await reclaimAll(world, null);
}

async function reclaimAll({ store }: World, nodeId: string | null): Promise<void> {
  for (const { held } of await store.jobs.abandoned({ nodeId })) {
    const results = await Promise.all([1, 2].map(() => store.jobs.reclaim({ held, nodeId, error: 'Lost' })));
    assert.equal(results.filter((job) => job !== undefined).length, 1);
  }
}

async function pause({ store, workflows }: World, a: number): Promise<void> {
  const { teamId, workflowId: id } = pick(workflows, a) as Workflow;
  await store.workflows.pause({ teamId, id });
}

async function resume({ store, workflows }: World, a: number): Promise<void> {
  const at = pick(workflows, a) as Workflow;
  await at.restore();
  at.isArchived = false;
  await store.workflows.resume({ teamId: at.teamId, id: at.workflowId, nextRunAt: store.now() });
}

async function archive({ store, workflows }: World, a: number): Promise<void> {
  const at = pick(workflows, a) as Workflow;
  await store.workflows.archive({ teamId: at.teamId, ids: [at.workflowId] });
  at.isArchived = true;
}

/** Fires due schedules on both nodes at the same moment. */
async function fire({ store }: World): Promise<void> {
  for (const { teamId, workflowId, dueAt } of await store.schedules.due({ limit: 10 })) {
    const input = { teamId, workflowId, dueAt, nextAt: store.now() + 60_000, run: true };
    const results = await Promise.all([1, 2].map(() => store.schedules.fire(input)));
    assert.equal(results.filter(({ outcome }) => outcome === 'taken').length, 1);
  }
}

async function wait({ opened }: World, a: number): Promise<void> {
  opened.advance(1_000 * 2 ** (a % 7));
}

/** Nothing is stuck: two healthy nodes finish everything. */
async function settle(world: World): Promise<void> {
  for (const n of world.workflows.keys()) await resume(world, n);
  const giveUpMs = performance.now() + SETTLE_MS;
  for (let round = 0; round < 40 || performance.now() < giveUpMs; round++) {
    await reap(world);
    await claim(world, 0, 2);
    for (const n of world.nodes.keys()) await beat(world, n, 0);
    for (const held of world.nodes.flatMap((node) => node.held)) await report(world, held, PUBLISHES);
    await checkInvariants(world);
    if (world.ended.size === world.jobs.size) return;
    world.opened.advance(5_000);
  }
  assert.fail('A job has not ended with two healthy nodes');
}
