/**
 * Every operation on jobs, called concurrently on two nodes in random order: there is no deadlock, no operation fails except
 * by its fence, and afterwards the tables are consistent.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { FencedError } from '../../model/error.ts';
import type { AttemptLease } from '../../model/job.ts';
import { silentLogger } from '../../observe/log.ts';
import { CLAIM, definition, heldOf, makeWorkflow, people, stageRecords } from '../conformance/setup.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';

const CALLERS = 16;
const CALLS = 30;
const PER_TEAM = 3;

const { url, drop } = await makeDatabase();
const pool = openPool({ url, size: 2, log: silentLogger });
const db = new Database(pool);
after(async () => {
  await pool.end();
  await drop();
});

interface World {
  store: Store;
  nodeId: string;
  at: { teamId: string; workflowId: string };
  /** The running attempts of both nodes. */
  held: AttemptLease[];
  /** A random integer from 0 to `below` - 1. */
  any(below: number): number;
}

test('16 concurrent callers on two nodes leave consistent tables', async () => {
  const open = () => openStore(url, { publicUrl: () => '', log: silentLogger });
  const stores = [await open(), await open()] as const;
  after(() => Promise.all(stores.map((store) => store.close())));
  const places = await makePlaces(stores[0]);
  const held: AttemptLease[] = [];
  const any = randomFrom(20_261_121);
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, n) => {
      for (let call = 0; call < CALLS; call++) {
        const at = places[any(places.length)] as World['at'];
        const act = ACTS[any(ACTS.length)] as (world: World) => Promise<unknown>;
        const store = stores[n % 2] as Store;
        await act({ store, nodeId: `node-${n % 2}`, at, held, any }).catch(unlessFenced);
      }
    }),
  );
  await checkTables();
});

async function makePlaces(store: Store): Promise<World['at'][]> {
  const places: World['at'][] = [];
  for (const team of ['a', 'b']) {
    for (const id of ['one', 'two', 'three']) {
      const overlap = id === 'one' ? 'reject' : 'buffer';
      const at = await makeWorkflow(store, { team, id, overlap });
      places.push(at);
      const hook = { url: `https://${id}.test/`, events: ['*'], secret: 's', limit: 9 };
      await store.webhooks.subscribe({ ...at, ...hook });
    }
  }
  return places;
}

const enqueue = ({ store, at, any }: World) =>
  store.jobs.enqueue({ ...at, origin: 'api', idempotencyKey: any(2) === 0 ? null : `k${any(9)}` });

async function claim({ store, nodeId, held, any }: World): Promise<void> {
  const claimed = await store.jobs.claim({ ...CLAIM, nodeId, limit: 1 + any(3), perTeam: PER_TEAM });
  held.push(...claimed.map(({ job }) => heldOf(job)));
}

async function run({ store, held, any }: World): Promise<void> {
  const [one] = held.splice(any(held.length), 1);
  if (one === undefined) return;
  await store.jobs.report({ held: one, lines: [{ seq: 1, at: 1, level: 'info', text: 'At work' }] });
  while (!(await store.records.sweep({ held: one, limit: 10 })).done);
  const names = Object.fromEntries(Array.from({ length: 5 }, () => [`p${any(9)}`, `${any(3)}`]));
  const seqs = await stageRecords(store, one, 'replace', people(names));
  const current = await store.records.currentSeqs({ held: one, afterSeq: 0, rows: 100 });
  await store.records.remove({ held: one, seqs: current.seqs.filter((seq) => !seqs.includes(seq)) });
  await store.records.publish({ held: one, state: undefined, fields: [] });
}

async function fail({ store, held, any }: World): Promise<void> {
  const one = held[any(held.length)];
  if (one === undefined) return;
  const then =
    any(2) === 0 ? ({ state: 'failed' } as const) : { state: 'retrying' as const, runAt: store.now() };
  await store.jobs.fail({ held: one, reason: 'error', error: 'It failed', failures: 1, then });
}

async function cancel({ store, at, any }: World): Promise<void> {
  const states = ['queued', 'running', 'retrying'] as const;
  const [job] = await store.jobs.list({ teamId: at.teamId, states, limit: 1 + any(3) });
  if (job) await store.jobs.cancel({ teamId: job.teamId, id: job.id, by: 'Canceled by a test' });
}

async function reclaim({ store, nodeId, any }: World): Promise<void> {
  const abandoned = await store.jobs.abandoned({ nodeId });
  const one = abandoned[any(abandoned.length)];
  if (one) await store.jobs.reclaim({ held: one.held, nodeId, error: 'The process is gone' });
}

async function pause({ store, at }: World): Promise<void> {
  const named = { teamId: at.teamId, id: at.workflowId };
  await store.workflows.pause(named);
  await store.workflows.resume({ ...named, nextRunAt: null });
}

async function archive({ store, at, any }: World): Promise<void> {
  const { teamId } = at;
  await store.workflows.archive({ teamId, ids: any(2) === 0 ? ['one', 'two'] : ['two', 'one'] });
  for (const id of ['one', 'two']) {
    const hash = `${any(9)}`;
    await store.workflows.apply({ teamId, id, definition: definition(), hash, nextRunAt: null });
  }
}

const beat = ({ store, nodeId, held }: World) =>
  store.jobs.beat({ nodeId, held: held.slice(-9), leaseMs: 3_000 });
const release = ({ store, held, any }: World) =>
  store.jobs.release({ held: held.splice(any(held.length), 2) });

const ACTS: ((world: World) => Promise<unknown>)[] = [
  ...Array.from({ length: 6 }, () => enqueue),
  ...Array.from({ length: 5 }, () => claim),
  ...Array.from({ length: 4 }, () => run),
  ...[fail, cancel, reclaim, pause, archive, beat, release],
];

function unlessFenced(error: unknown): void {
  if (!(error instanceof FencedError)) throw error;
}

async function checkTables(): Promise<void> {
  const none = async (rule: string, sql: string) => assert.deepEqual(await db.all(sql), [], rule);
  await none(
    'a job in the second slot has a job before it',
    `select id from job behind where slot = 1 and state in ('queued', 'retrying')
       and not exists (select 1 from job first
                       where first.team_id = behind.team_id and first.workflow_id = behind.workflow_id
                         and first.slot = 0 and first.state in ('queued', 'running', 'retrying'))`,
  );
  await none(
    'a waiting job is parked exactly while its workflow is paused or archived',
    `select job.id from job join workflow on workflow.team_id = job.team_id and workflow.id = job.workflow_id
     where job.state in ('queued', 'retrying')
       and (parked = 1) <> (paused_at is not null or archived_at is not null)`,
  );
  await none(
    'no team runs more jobs than its limit',
    `select team_id from job where state = 'running' group by team_id having count(*) > ${PER_TEAM}`,
  );
  await none(
    'the numbers of events have no gap',
    'select team_id from event group by team_id having max(sequence) <> count(*)',
  );
  await none(
    'every ended job has one event of its end',
    `select job.id from job
     left join event on event.team_id = job.team_id and event.job_id = job.id
       and event.type = 'workflow_' || job.state and job.finished_at is not null
     group by job.id, job.finished_at having count(event.id) <> (job.finished_at is not null)::integer`,
  );
  await none(
    'PostgreSQL found no deadlock',
    'select deadlocks from pg_stat_database where datname = current_database() and deadlocks > 0',
  );
}

/** Pseudorandom numbers, the same in every run: mulberry32. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  };
}
