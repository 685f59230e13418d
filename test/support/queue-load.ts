/** The life of jobs and deliveries through the store, without the sources and receivers: as many as the database bears. */
import assert from 'node:assert/strict';
import type { Held } from '../../src/model/job.ts';
import { load, OK, settlement, subscribe } from '../../src/store/conformance/sending.ts';
import { heldOf, makeJob, makeWorkflow } from '../../src/store/conformance/setup.ts';
import type { Store } from '../../src/store/store.ts';

const NODE = 'node-of-the-load';
const LEASE_MS = 30_000;
/** What a node claims, and settles, at once. */
const AT_ONCE = 20;

export interface QueueLoad {
  /** How many jobs one round has. */
  jobs: number;
  /** One job of each workflow: queued, claimed, beaten, published, and told to the webhook of its team. */
  round(): Promise<void>;
}

/** Makes teams with a webhook each, and workflows. */
export async function makeQueueLoad(
  store: Store,
  { teams, workflows }: { teams: number; workflows: number },
): Promise<QueueLoad> {
  const places: { teamId: string; workflowId: string }[] = [];
  for (let team = 0; team < teams; team += 1) {
    for (let n = 0; n < workflows; n += 1) {
      places.push(await makeWorkflow(store, { team: `team-${team}`, id: `workflow-${n}` }));
    }
    await subscribe(store, { teamId: places.at(-1)?.teamId as string, workflowId: null });
  }
  return {
    jobs: places.length,
    async round() {
      await Promise.all(places.map((at) => makeJob(store, at)));
      let ended = 0;
      while (ended < places.length) {
        const claimed = await store.jobs.claim({
          nodeId: NODE,
          limit: AT_ONCE,
          leaseMs: LEASE_MS,
          perTeam: AT_ONCE,
        });
        const held = claimed.map(({ job }) => heldOf(job));
        assert.notEqual(held.length, 0, 'what was queued is claimed');
        await Promise.all([tell(store), run(store, held)]);
        ended += held.length;
      }
      await tell(store);
    },
  };
}

async function run(store: Store, held: readonly Held[]): Promise<void> {
  assert.deepEqual(await store.jobs.beat({ nodeId: NODE, held, leaseMs: LEASE_MS }), {
    lost: [],
    canceled: [],
  });
  await Promise.all(
    held.map((one) =>
      store.records.publish({
        held: one,
        guards: { minRecords: 0, maxDropPercent: null },
        state: undefined,
        fields: [],
      }),
    ),
  );
}

/** Every lane with something due, until nothing is. */
async function tell(store: Store): Promise<void> {
  const lanes = await store.deliveries.lanes({ nodeId: NODE, leaseMs: LEASE_MS, limit: 1_000 });
  await Promise.all(
    lanes.map(async ({ teamId, webhookId }) => {
      for (;;) {
        const due = await load(store, teamId, webhookId);
        if (due.length === 0) return;
        for (let from = 0; from < due.length; from += AT_ONCE) {
          const settlements = due
            .slice(from, from + AT_ONCE)
            .map((one) => settlement(one, 1, { state: 'delivered' }, OK));
          await store.deliveries.settle({ settlements });
        }
      }
    }),
  );
}
