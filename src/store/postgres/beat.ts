/**
 * Renews the leases of the jobs that a node runs. One statement for each team renews all jobs that are not locked,
 * without waiting for a lock, so that a single locked job does not make its node lose all other jobs.
 */

import { Problem } from '../../model/error.ts';
import type { AttemptLease } from '../../model/job.ts';
import type { Store } from '../store.ts';
import type { Tx } from '../transaction.ts';

type BeatInput = Parameters<Store['jobs']['beat']>[0];
type BeatResult = Awaited<ReturnType<Store['jobs']['beat']>>;

/** A heartbeat waits for a locked job for 1/15 of the lease. The next heartbeat tries again before the lease ends. */
const LOCK_PART = 15;

/** Makes `beat` from its two transactions. */
export function beating(renew: {
  free(input: BeatInput & { teamId: string }): ReturnType<typeof renewFree>;
  locked(input: Omit<BeatInput, 'held'> & { held: AttemptLease }): ReturnType<typeof renewLocked>;
}): Store['jobs']['beat'] {
  return async (input) => {
    const result: BeatResult = { lost: [], canceled: [] };
    const locked: AttemptLease[] = [];
    const teams = Map.groupBy(input.held, ({ teamId }) => teamId);
    const ofTeam = async ([teamId, held]: [string, AttemptLease[]]) => {
      const free = await renew.free({ ...input, teamId, held });
      result.lost.push(...free.lost);
      result.canceled.push(...free.canceled);
      locked.push(...free.locked);
    };
    const late: AttemptLease[] = [];
    const problems: Problem[] = [];
    const isolated = async ([teamId, held]: [string, AttemptLease[]]) => {
      try {
        await ofTeam([teamId, held]);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        // In a distributed database, the servers of other teams may be available.
        problems.push(error);
        late.push(...held);
      }
    };
    await Promise.all([...teams].map(isolated));
    if (problems.length > 0 && problems.length === teams.size) throw problems[0];
    const single = async (held: AttemptLease) => {
      try {
        const renewed = await renew.locked({ ...input, held });
        if (renewed !== 'renewed') result[renewed].push(held);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        // The job is neither renewed nor lost, because no other node can take a job while it is locked.
        late.push(held);
      }
    };
    await Promise.all(locked.map(single));
    return late.length === 0 ? result : { ...result, late };
  };
}

/**
 * Selects a job by its primary key, not by the other conditions. Otherwise the planner might search the index
 * of running jobs. During a long transaction, that index keeps an entry for every job that has run since its start.
 */
const byKey = (name: string) => `select * from job where job.team_id = $1 and job.id = ${name}.id limit 1`;

/** Renews those jobs of a team that are not locked at this moment. Returns the locked jobs in `locked`. */
export async function renewFree(
  tx: Tx,
  { teamId, nodeId, held, leaseMs }: BeatInput & { teamId: string },
): Promise<BeatResult & { locked: AttemptLease[] }> {
  const rows = await tx.db.all<{ place: number; renewed: boolean; canceled: boolean }>(
    `with held as materialized (
       select mine.place, job.id, job.attempt
       from unnest($2::text[], $3::integer[]) with ordinality as mine (id, attempt, place)
       cross join lateral (${byKey('mine')}) job
       where job.attempt = mine.attempt and job.state = 'running' and job.node_id = $4
     ), free as materialized (
       select job.id
       from held cross join lateral (${byKey('held')} for update skip locked) job
       where job.attempt = held.attempt and job.state = 'running' and job.node_id = $4
     ), renewed as (
       update job set lease_until = $5 from free
       where job.team_id = $1 and job.id = free.id
       returning job.id, job.cancel_requested_at
     )
     select held.place, renewed.id is not null as renewed, renewed.cancel_requested_at is not null as canceled
     from held left join renewed on renewed.id = held.id`,
    teamId,
    held.map(({ jobId }) => jobId),
    held.map(({ attempt }) => attempt),
    nodeId,
    tx.now + leaseMs,
  );
  const found = new Map(rows.map((row) => [row.place - 1, row]));
  return {
    lost: held.filter((_, place) => !found.has(place)),
    canceled: held.filter((_, place) => found.get(place)?.canceled),
    locked: held.filter((_, place) => found.get(place)?.renewed === false),
  };
}

/** Renews one job. Waits a limited time if another transaction has locked the job. */
export async function renewLocked(
  tx: Tx,
  { nodeId, held, leaseMs }: Omit<BeatInput, 'held'> & { held: AttemptLease },
): Promise<'renewed' | 'lost' | 'canceled'> {
  const [, row] = await Promise.all([
    tx.db.run(`set local lock_timeout = ${Math.ceil(leaseMs / LOCK_PART)}`),
    tx.db.get<{ canceled: boolean }>(
      `update job set lease_until = $1
       where team_id = $2 and id = $3 and attempt = $4 and state = 'running' and node_id = $5
       returning cancel_requested_at is not null as canceled`,
      tx.now + leaseMs,
      held.teamId,
      held.jobId,
      held.attempt,
      nodeId,
    ),
  ]);
  if (row === undefined) return 'lost';
  return row.canceled ? 'canceled' : 'renewed';
}
