/** Claims due jobs for a node, fairly between teams, and records heartbeats of running jobs. */

import type { AttemptLease } from '../../model/job.ts';
import { type Competitor, turnsOf } from '../../model/job-turns.ts';
import { dueTeams, RAISE_AFTER_MS, raise } from '../operations/agenda.ts';
import { type ClaimedJob, claimedJob, hasSeveralTeams, LONGEST_WAIT_MS } from '../operations/attempts.ts';
import { appendJobEvent } from '../operations/jobs.ts';
import { workflowRow } from '../operations/workflows.ts';
import { JOB, type JobRow, toJob, type WorkflowRow } from '../rows.ts';
import type { Store } from '../store.ts';
import type { Tx, View } from '../transaction.ts';

type ClaimInput = Parameters<Store['jobs']['claim']>[0];

/**
 * Maximum number of teams without due jobs that one claim searches, because all writes wait for it. After an upgrade, the
 * agenda names all teams.
 */
const MAX_IDLE = 2_000;
/** Maximum number of teams that are asked when their first job is due. */
const MAX_ASKED = 1_000;

/** Claims jobs. Teams take turns (see `model/job-turns.ts`). */
export async function claim(tx: Tx, input: ClaimInput): Promise<ClaimedJob[]> {
  const { nodeId, leaseMs, perTeam, except = [] } = input;
  const candidates = new Map((await candidatesOf(tx)).map((team) => [team.teamId, team]));
  const jobs = new Map<string, DueJob[]>();
  const rest = [...candidates.keys()];
  let idle = 0;
  const turns = await turnsOf(input, {
    searched: new Map(),
    rest,
    hasSeveral: () => hasSeveralTeams(tx),
    search: async (teamIds) => {
      const found: Competitor[] = [];
      for (const teamId of teamIds) {
        const { running, served, jobsAt } = candidates.get(teamId) as Candidate;
        const levels = await levelsOf(tx, teamId);
        const ofThis = except.filter((one) => one.teamId === teamId).map(({ workflowId }) => workflowId);
        const due = await dueJobs(tx, { teamId, levels, except: ofThis, limit: input.limit });
        if (due.length === 0) {
          await raiseIfTooEarly(tx, { teamId, jobsAt, levels });
          idle += 1;
        }
        jobs.set(teamId, due);
        const most = levels[0]?.most ?? perTeam;
        found.push({ teamId, running, most, served, dueAt: due.map(({ runAt }) => runAt) });
      }
      if (idle > MAX_IDLE) rest.length = 0;
      return found;
    },
  });
  const claimed: ClaimedJob[] = [];
  for (const teamId of turns) {
    claimed.push(await start(tx, jobs.get(teamId)?.shift() as DueJob, { nodeId, leaseMs }));
  }
  return claimed;
}

/** A team that may have due jobs. */
interface Candidate {
  teamId: string;
  running: number;
  /** When a job of the team was last claimed. */
  served: number;
  /** When the team's jobs are due by its row, which may be too early. */
  jobsAt: number;
}

type DueJob = Pick<JobRow, 'teamId' | 'id' | 'attempt' | 'runAt' | 'startedAt'>;

const CANDIDATES = `
  select id as "teamId", claimed_at as "claimedAt", jobs_at as "jobsAt" from team indexed by team_jobs
  where jobs_at <= $1
  union all
  select id, claimed_at, jobs_at from team indexed by team_jobs where jobs_at > $2`;

/** The teams that may have due jobs, in the order in which they are searched. Reads only a few columns of each. */
async function candidatesOf(tx: Tx): Promise<Candidate[]> {
  const running = await runningByTeam(tx);
  const teams = await tx.db.all<{ teamId: string; claimedAt: number; jobsAt: number }>(
    CANDIDATES,
    tx.now,
    tx.now + LONGEST_WAIT_MS,
  );
  return teams
    .map(({ teamId, claimedAt, jobsAt }) => ({
      teamId,
      running: running.get(teamId) ?? 0,
      // A time in the future was stored before the clock was set back, so it is ignored.
      served: claimedAt > tx.now ? 0 : claimedAt,
      jobsAt,
    }))
    .sort(
      (one, other) => one.running - other.running || one.served - other.served || one.jobsAt - other.jobsAt,
    );
}

/** Reads only the index `job_running`. */
async function runningByTeam(view: View): Promise<Map<string, number>> {
  const rows = await view.db.all<{ teamId: string; running: number }>(
    `select team_id as "teamId", count(*) as running from job indexed by job_running where state = 'running' group by team_id`,
  );
  return new Map(rows.map(({ teamId, running }) => [teamId, running]));
}

/** A priority of a team's waiting jobs, and when the first of these jobs is due. */
interface Level {
  priority: number;
  firstAt: number;
  /** The team's own limit of running jobs. Null if the team has none. */
  most: number | null;
}

// Each step seeks the next priority in the partial index `job_due`. The query repeats the condition of the index, which
// leaves out parked jobs. The cost grows with the number of priorities, not with the number of waiting jobs.
const WAITS = `from job indexed by job_due
  where state in ('queued', 'retrying') and slot = 0 and parked = 0 and team_id = $1`;
const LEVELS = `
  with recursive level (priority) as (
    select * from (select priority ${WAITS} order by priority desc limit 1)
    union all
    select (select priority ${WAITS} and priority < level.priority order by priority desc limit 1)
    from level where priority is not null
  )
  select priority, (select run_at ${WAITS} and priority = level.priority order by run_at limit 1) as "firstAt",
    (select most from quota where team_id = $1 and name = 'runningJobs') as most
  from level where priority is not null`;

function levelsOf(view: View, teamId: string): Promise<Level[]> {
  return view.db.all<Level>(LEVELS, teamId);
}

const NEXT = `
  select team_id as "teamId", id, attempt, run_at as "runAt", started_at as "startedAt" ${WAITS} and priority = $2
    and workflow_id not in (select value from json_each($3))`;

/**
 * Returns jobs of a team that are due, in the order in which they start: the highest priority first, then the job that
 * has been due longest.
 */
async function dueJobs(
  tx: Tx,
  {
    teamId,
    levels,
    except,
    limit,
  }: { teamId: string; levels: readonly Level[]; except: readonly string[]; limit: number },
): Promise<DueJob[]> {
  const found: DueJob[] = [];
  for (const { priority } of levels) {
    const at = [teamId, priority, JSON.stringify(except)];
    for (const [condition, time] of [
      ['run_at <= $4', tx.now],
      ['run_at > $4', tx.now + LONGEST_WAIT_MS],
    ] as const) {
      if (found.length === limit) return found;
      const sql = `${NEXT} and ${condition} order by run_at limit $5`;
      found.push(...(await tx.db.all<DueJob>(sql, ...at, time, limit - found.length)));
    }
  }
  return found;
}

/** Raises the time in a team's row if it is too early, but not each time that an active team has no job for a moment. */
async function raiseIfTooEarly(
  tx: Tx,
  { teamId, jobsAt, levels }: { teamId: string; jobsAt: number; levels: readonly Level[] },
): Promise<void> {
  const next = firstOf(levels);
  if ((next !== null && next <= tx.now) || (jobsAt > tx.now - RAISE_AFTER_MS && jobsAt <= tx.now)) return;
  await raise(tx, { teamId, item: 'jobs' }, async () => next);
}

function firstOf(levels: readonly Level[]): number | null {
  return levels.length === 0 ? null : Math.min(...levels.map(({ firstAt }) => firstAt));
}

/** When the first waiting job is due. Asks the teams in the order of their agenda until no other can be earlier. */
export async function nextDueAt(view: View): Promise<number | null> {
  let first: number | null = null;
  const until = Number.MAX_SAFE_INTEGER;
  const teams = await dueTeams(view, { item: 'jobs', until, limit: MAX_ASKED });
  for (const { teamId, at } of teams) {
    if (first !== null && at >= first) return first;
    const next = firstOf(await levelsOf(view, teamId));
    if (next !== null) first = Math.min(first ?? next, next);
  }
  return teams.length < MAX_ASKED ? first : view.now;
}

async function start(
  tx: Tx,
  due: DueJob,
  { nodeId, leaseMs }: { nodeId: string; leaseMs: number },
): Promise<ClaimedJob> {
  const job = (await tx.db.get<JobRow>(
    `update job
     set state = 'running', attempt = attempt + 1, node_id = ?, lease_until = ?, progress = null,
         process_pid = null, process_started_at = null, started_at = coalesce(started_at, ?)
     where team_id = ? and id = ? and attempt = ? and state in ('queued', 'retrying')
     returning ${JOB}`,
    nodeId,
    tx.now + leaseMs,
    tx.now,
    due.teamId,
    due.id,
    due.attempt,
  )) as JobRow;
  await tx.db.run('update team set claimed_at = ? where id = ?', tx.now, due.teamId);
  if (due.startedAt === null) appendJobEvent(tx, job, 'workflow_started');
  const workflow = (await workflowRow(tx, job.teamId, job.workflowId)) as WorkflowRow;
  return claimedJob(toJob(job), workflow);
}

export async function beat(
  tx: Tx,
  { nodeId, held, leaseMs }: Parameters<Store['jobs']['beat']>[0],
): Promise<{ lost: AttemptLease[]; canceled: AttemptLease[] }> {
  const lost: AttemptLease[] = [];
  const canceled: AttemptLease[] = [];
  for (const { teamId, jobId, attempt } of held) {
    const renewed = await tx.db.get<{ canceledAt: number | null }>(
      `update job set lease_until = $1
       where team_id = $2 and id = $3 and attempt = $4 and state = 'running' and node_id = $5
       returning cancel_requested_at as "canceledAt"`,
      tx.now + leaseMs,
      teamId,
      jobId,
      attempt,
      nodeId,
    );
    if (renewed === undefined) lost.push({ teamId, jobId, attempt });
    else if (renewed.canceledAt !== null) canceled.push({ teamId, jobId, attempt });
  }
  return { lost, canceled };
}
