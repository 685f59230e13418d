/** A load of jobs and deliveries on the store, without sources and receivers, as fast as the database allows. */
import assert from 'node:assert/strict';
import pg from 'pg';
import type { AttemptLease } from '../../../src/model/job.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { load, OK, settlement, subscribe } from '../../../src/store/conformance/sending.ts';
import { heldOf, makeJob, makeWorkflow } from '../../../src/store/conformance/setup.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { administer } from '../postgres.ts';

const NODE = 'node-of-the-load';
const LEASE_MS = 30_000;
/** Default number of jobs per claim, and of deliveries per batch. */
const AT_ONCE = 20;

export interface QueueLoad {
  /** Number of jobs per round. */
  jobs: number;
  /** Queues, claims, renews and publishes one job per workflow, and delivers its events to the team's webhook. */
  round(): Promise<void>;
}

/** Makes teams with one webhook each, and workflows. */
export async function makeQueueLoad(
  store: Store,
  { teams, workflows, atOnce = AT_ONCE }: { teams: number; workflows: number; atOnce?: number },
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
          limit: atOnce,
          leaseMs: LEASE_MS,
          perTeam: AT_ONCE,
        });
        const held = claimed.map(({ job }) => heldOf(job));
        assert.notEqual(held.length, 0, 'queued jobs can be claimed');
        await Promise.all([deliver(store), run(store, held)]);
        ended += held.length;
      }
      await deliver(store);
    },
  };
}

/** A load on its own database. */
export interface BesideLoad extends QueueLoad {
  url: string;
}

/**
 * The same load on two databases of one server. A long-running transaction prevents the removal of dead rows in only one
 * of them.
 */
export async function makeBesideLoads(
  server: string,
  size: { teams: number; workflows: number },
): Promise<{ alone: BesideLoad; beside: BesideLoad; hold(): Promise<void>; end(): Promise<void> }> {
  const open = async (name: string) => {
    await administer(server, `create database ${name}`);
    const url = new URL(server);
    url.pathname = `/${name}`;
    const store = await openStore(url.href, { publicUrl: () => '', log: silentLogger });
    const load = await makeQueueLoad(store, size);
    await load.round();
    return { ...load, url: url.href, store };
  };
  const alone = await open('alone');
  const beside = await open('beside');
  const held = new pg.Client({ connectionString: beside.url });
  await held.connect();
  return {
    alone,
    beside,
    hold: async () => {
      await held.query('begin isolation level repeatable read; select 1 from job limit 1');
    },
    end: async () => {
      await Promise.all([held.end(), alone.store.close(), beside.store.close()]);
    },
  };
}

async function run(store: Store, held: readonly AttemptLease[]): Promise<void> {
  assert.deepEqual(await store.jobs.beat({ nodeId: NODE, held, leaseMs: LEASE_MS }), {
    lost: [],
    canceled: [],
  });
  await Promise.all(
    held.map((one) =>
      store.records.publish({
        held: one,
        state: undefined,
        fields: [],
      }),
    ),
  );
}

/** Settles all due deliveries. */
async function deliver(store: Store): Promise<void> {
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
