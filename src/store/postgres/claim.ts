/**
 * Claims due jobs for a node, fairly between teams, while other nodes do the same.
 *
 *     turns ──▶ how many jobs each team may start ──▶ a transaction per team, a few at a time ──▶ jobs
 *       ▲                                               └── the team had fewer jobs, or its rows are locked
 *       └────────────────── for the remaining places, without that team ──┘
 *
 * The first step is a plain read, which locks nothing. The transaction of a team then takes the lock of the team's
 * claims, so that no other node claims jobs of this team until the commit. The transaction counts running jobs, and
 * starts jobs within `perTeam`. Locked rows of one team therefore delay no other team, and transactions that write
 * events delay claims only while they commit.
 */

import { Problem } from '../../model/error.ts';
import type { Clock } from '../../std/clock.ts';
import { type ClaimedJob, claimedJob, hasSeveralTeams, LONGEST_WAIT_MS } from '../operations/attempts.ts';
import { appendJobEvent } from '../operations/jobs.ts';
import { type JobRow, OF_JOB, toJob, WORKFLOW, type WorkflowRow } from '../rows.ts';
import type { Value } from '../sql.ts';
import type { Store } from '../store.ts';
import type { Tx, View } from '../transaction.ts';
import { type Bounds, ClaimBounds, WAITS } from './claim-bounds.ts';

type ClaimInput = Parameters<Store['jobs']['claim']>[0];

/** Asks which teams may start jobs. The teams in `without` are left out. */
interface TurnsInput extends ClaimInput {
  bounds: Bounds;
  without: readonly string[];
  /** Teams whose jobs were claimed, the most recent last. */
  served: readonly string[];
}

/** Starts up to `limit` jobs of one team. */
interface TakeInput extends ClaimInput {
  bounds: Bounds;
  /**
   * The team whose jobs are started. The field is not called `teamId`, because this call would then wait for the team's
   * turn at a connection.
   */
  from: string;
}

/** Maximum number of teams remembered as served. All other teams count as never served. */
const MAX_SERVED = 1_000;

/** Maximum number of transactions that one claim runs at the same time. */
const AT_ONCE = 4;

/** Maximum number of rounds in one claim. Another round follows if a team had fewer jobs to start than expected. */
const MAX_ROUNDS = 3;

/** The maximum time to wait for a team's locks. Healthy transactions hold these locks only for a commit. */
export const LOCK_MS = 500;

/**
 * How long to skip a team whose locks were not released in time, so that jobs of other teams do not wait for it.
 */
const HUNG_MS = 2_000;

/**
 * Makes `claim` and `nextDueAt` from their operations. If `claim` rejects, the table may already show jobs as running
 * on this node: other transactions of the same claim, or the failed transaction itself, may have been committed.
 */
export function claiming(running: {
  turns(input: TurnsInput): Promise<string[]>;
  take(input: TakeInput): Promise<ClaimedJob[]>;
  survey(input: undefined): Promise<Bounds>;
  oldest(input: { since: number }): Promise<number | null>;
  now: Clock;
}): Pick<Store['jobs'], 'claim' | 'nextDueAt'> {
  const known = new ClaimBounds(running.survey);
  const served = new Set<string>();
  /** The skipped teams, each with the time at which skipping ends, by the monotonic clock. */
  const hung = new Map<string, number>();
  const claim: Store['jobs']['claim'] = async (input) => {
    const bounds = await known.next(running.now());
    for (const [teamId, untilMs] of hung) if (untilMs <= performance.now()) hung.delete(teamId);
    const without = [...hung.keys()];
    const claimed: ClaimedJob[] = [];
    for (let round = 0; round < MAX_ROUNDS && claimed.length < input.limit; round++) {
      const limit = input.limit - claimed.length;
      const busy = input.busy && [...input.busy, ...claimed.map(({ job }) => job.teamId)];
      const request = { ...input, limit, bounds, ...(busy && { busy }) };
      const turns = await running.turns({ ...request, without, served: [...served] });
      const places = new Map<string, number>();
      for (const teamId of turns) places.set(teamId, (places.get(teamId) ?? 0) + 1);
      const taken = await concurrently(places, async ([teamId, most]) => {
        const jobs = await unlessBusy(running.take({ ...request, limit: most, from: teamId }));
        if (jobs === undefined) hung.set(teamId, performance.now() + HUNG_MS);
        return [teamId, jobs ?? []] as const;
      });
      const byTeam = new Map(taken);
      const jobs = turns.flatMap((teamId) => byTeam.get(teamId)?.shift() ?? []);
      for (const { job } of jobs) noteServed(served, job.teamId);
      claimed.push(...jobs);
      if (jobs.length === turns.length) break;
      for (const [teamId, most] of places) {
        if (jobs.filter(({ job }) => job.teamId === teamId).length < most) without.push(teamId);
      }
    }
    return claimed;
  };
  return { claim, nextDueAt: () => running.oldest({ since: known.waitingSince }) };
}

/** Handles every item, a few items at a time. If one fails, rejects only after all running calls have ended. */
async function concurrently<Item, Result>(
  items: Iterable<Item>,
  perform: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = [...items].values();
  const one = async () => {
    for (const item of rest) results.push(await perform(item));
  };
  const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, one));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
  return results;
}

/**
 * Returns undefined if the database was too busy, because the transaction then claimed nothing. After any other failure
 * the transaction may have been committed, so the failure is passed to the caller.
 */
function unlessBusy<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'database_busy') return undefined;
    throw error;
  });
}

function noteServed(served: Set<string>, teamId: string): void {
  served.delete(teamId);
  served.add(teamId);
  for (const longestAgo of served) {
    if (served.size <= MAX_SERVED) return;
    served.delete(longestAgo);
  }
}

/**
 * Returns the team for each place, in order. The last place may be reserved for a team without running jobs on this
 * node (see `busy` of `claim`).
 */
export async function turns(view: View, input: TurnsInput): Promise<string[]> {
  const { limit, busy, without } = input;
  const found = await ranked(view, input);
  const last = found[limit - 1];
  if (busy === undefined || last === undefined) return found;
  const before = found.slice(0, -1);
  const having = [...new Set([...busy, ...before])];
  if (!having.includes(last) || !(await hasSeveralTeams(view))) return found;
  return [...before, ...(await ranked(view, { ...input, limit: 1, without: [...without, ...having] }))];
}

/** Ranks only the teams that come first. If these have too few due jobs, ranks all teams. */
async function ranked(view: View, input: TurnsInput): Promise<string[]> {
  const some = 2 * input.limit + 8;
  const first = await rankedOf(view, input, some);
  if (first.ranked.length === input.limit || first.teams <= some) return first.ranked;
  return (await rankedOf(view, input, first.teams)).ranked;
}

/** Ranks at most `teams` teams. The returned `teams` counts all teams that have waiting jobs and room to run them. */
async function rankedOf(
  view: View,
  { without, served, ...input }: TurnsInput,
  teams: number,
): Promise<{ ranked: string[]; teams: number }> {
  const values = [...sharedValues(view, input), teams, without, served];
  const rows = await view.db.all<{ id: string | null; teams: number }>(TURNS, ...values);
  return { ranked: rows.flatMap(({ id }) => id ?? []), teams: rows[0]?.teams ?? 0 };
}

/** Starts jobs of a team. */
export async function take(tx: Tx, input: TakeInput): Promise<ClaimedJob[]> {
  const { from: teamId, nodeId, leaseMs } = input;
  const [, rows] = await Promise.all([
    tx.db.run('select pg_advisory_xact_lock(hashtextextended($1, 0))', `flowhook claims ${teamId}`),
    // This is a separate statement, so that it sees everything that was committed before the lock was taken.
    tx.db.all<JobRow & { dueAt: number; place: number }>(
      TAKE,
      ...sharedValues(tx, input),
      teamId,
      nodeId,
      tx.now + leaseMs,
    ),
  ]);
  if (rows.length === 0) return [];
  const jobs = rows.sort((one, other) => one.place - other.place);
  for (const job of jobs) if (job.attempt === 1) appendJobEvent(tx, job, 'workflow_started');
  const workflows = await tx.db.all<WorkflowRow>(
    `select ${WORKFLOW} from workflow where team_id = $1 and id = any($2::text[])`,
    teamId,
    jobs.map((job) => job.workflowId),
  );
  const byId = new Map(workflows.map((row) => [row.id, row]));
  return jobs.map(({ dueAt, place: _, ...job }) =>
    // `runAt` is the time at which the job was due, as on SQLite.
    claimedJob({ ...toJob(job), runAt: dueAt }, byId.get(job.workflowId) as WorkflowRow),
  );
}

/** Both statements take these values as parameters $1 to $10. */
function sharedValues(
  { now }: View,
  { perTeam, except = [], bounds, limit }: Omit<TurnsInput, 'without' | 'served'>,
): Value[] {
  return [
    now,
    now + LONGEST_WAIT_MS,
    perTeam,
    limit,
    except.map(({ teamId }) => teamId),
    except.map(({ workflowId }) => workflowId),
    bounds.waitingSince,
    bounds.runningSince,
    bounds.running.map(({ teamId }) => teamId),
    bounds.running.map(({ id }) => id),
  ];
}

/** Selects waiting jobs that are dated after the bound. Dead index entries before the bound are never read. */
const MAY_WAIT = `${WAITS} and job.run_at >= $7`;

/** Selects the team of each running job: jobs claimed since the bound, and older jobs that the bounds list by id. */
const runningTeams = (among = '') => `
  select job.team_id from job where job.state = 'running' and job.run_at >= $8 ${among}
  union all
  select job.team_id from unnest($9::text[], $10::text[]) as named (team_id, id)
  cross join lateral (
    select * from job where job.team_id = named.team_id and job.id = named.id limit 1
  ) job
  where job.state = 'running' and job.run_at < $8 ${among}`;

/** Selects due jobs of one team and priority that this node may run. The job that has been due longest comes first. */
const next = (limit: string) => `
  (select job.id, job.attempt, job.run_at, 0 as misdated from job
   where ${MAY_WAIT} and job.team_id = level.team_id and job.priority = level.priority and job.run_at <= $1
     and not (job.team_id, job.workflow_id) in (select team_id, workflow_id from excepted)
   order by job.run_at limit ${limit})
  union all
  (select job.id, job.attempt, job.run_at, 1 from job
   where ${MAY_WAIT} and job.team_id = level.team_id and job.priority = level.priority and job.run_at > $2
     and not (job.team_id, job.workflow_id) in (select team_id, workflow_id from excepted)
   order by job.run_at limit ${limit})`;

const EXCEPTED = `
  excepted as materialized (
    select * from unnest($5::text[], $6::text[]) as excepted (team_id, workflow_id)
  )`;

// This is a loose index scan, as in `waiting` below. It seeks from priority to priority in the index `job_due`.
const LEVEL = `
  level (team_id, priority) as (
    select turn.team_id,
           (select job.priority from job where ${MAY_WAIT} and job.team_id = turn.team_id
            order by job.priority desc limit 1)
    from turn
    union all
    select level.team_id,
           (select job.priority from job where ${MAY_WAIT} and job.team_id = level.team_id
              and job.priority < level.priority
            order by job.priority desc limit 1)
    from level where level.priority is not null
  )`;

const IN_TEAM = 'level.priority desc, due.misdated, due.run_at, due.id';

// Teams take turns, so that no team's backlog delays another team. The team with the fewest running jobs comes first;
// on a tie, the team that was served longest ago. The rank of a job is the number of jobs that its team would have
// running if the job started. Starting the jobs with the lowest ranks first therefore gives teams turns.
//
// `waiting` seeks from team to team in the index `job_due`. Its cost depends on the number of teams and priorities, not
// on the number of waiting jobs.
const TURNS = `
  with recursive
    ${EXCEPTED},
    waiting (team_id) as (
      (select job.team_id from job where ${MAY_WAIT} order by job.team_id limit 1)
      union all
      select (select job.team_id from job where ${MAY_WAIT} and job.team_id > waiting.team_id
              order by job.team_id limit 1)
      from waiting where waiting.team_id is not null
    ),
    running as materialized (
      select team_id, count(*)::integer as jobs from (${runningTeams()}) counted group by team_id
    ),
    served as materialized (
      select * from unnest($13::text[]) with ordinality as served (team_id, turn)
    ),
    open as materialized (
      select waiting.team_id, coalesce(running.jobs, 0) as running, coalesce(served.turn, 0) as served,
             coalesce(quota.most, $3) as most
      from waiting
      left join quota on quota.team_id = waiting.team_id and quota.name = 'runningJobs'
      left join running on running.team_id = waiting.team_id
      left join served on served.team_id = waiting.team_id
      where waiting.team_id is not null and coalesce(running.jobs, 0) < coalesce(quota.most, $3)
        and not waiting.team_id = any($12::text[])
    ),
    turn as materialized (
      select * from open order by running, served, team_id limit $11
    ),
    ${LEVEL},
    candidate as materialized (
      select turn.team_id, turn.running, turn.served, turn.most, due.run_at,
             row_number() over (partition by turn.team_id order by ${IN_TEAM}) as place
      from turn
      join level on level.team_id = turn.team_id and level.priority is not null
      cross join lateral (${next('$4')}) due
    ),
    ranked as materialized (
      select team_id,
             row_number() over (order by running + place, case place when 1 then served end nulls last,
                                         run_at, team_id, place) as rank
      from candidate where running + place <= most
      order by rank limit $4
    )
  select ranked.team_id as id, counted.teams
  from (select count(*) as teams from open) counted left join ranked on true
  order by ranked.rank`;

// The statement locks up to eight jobs more than may start, because other transactions may have locked some. The
// `run_at` of a running job is the time of its claim, because `run_at` orders the index `job_running`.
const TAKE = `
  with recursive
    ${EXCEPTED},
    turn (team_id) as materialized (select $11::text collate "C"),
    ${LEVEL},
    room as materialized (
      select coalesce((select most from quota where team_id = $11 and name = 'runningJobs'), $3)
        - (select count(*) from (${runningTeams('and job.team_id = $11')}) counted) as jobs
    ),
    candidate as materialized (
      select due.id, due.attempt, row_number() over (order by ${IN_TEAM}) as place
      from level cross join lateral (${next('$4::integer + 8')}) due
      where level.priority is not null
    ),
    free as materialized (
      select job.team_id, job.id, job.run_at as due_at, candidate.place
      -- Each job is looked up separately. With a join, the planner might read all jobs of the team.
      from candidate cross join lateral (
        select * from job where job.team_id = $11 and job.id = candidate.id
          and job.state in ('queued', 'retrying') and job.slot + job.parked = 0 and job.attempt = candidate.attempt
        limit 1 for update skip locked
      ) job
      where candidate.place <= $4::integer + 8
      order by candidate.place limit (select least(greatest(jobs, 0), $4) from room)
    )
  update job
  set state = 'running', attempt = job.attempt + 1, node_id = $12, lease_until = $13, progress = null, run_at = $1,
      process_pid = null, process_started_at = null, started_at = coalesce(job.started_at, $1)
  from free where job.team_id = free.team_id and job.id = free.id
  returning ${OF_JOB}, free.due_at as "dueAt", free.place`;
