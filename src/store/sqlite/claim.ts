/** Claims due jobs for a node, fairly between teams, and records heartbeats of running jobs. */

import type { AttemptLease } from '../../model/job.ts';
import { type ClaimedJob, claimedJob, hasSeveralTeams, LONGEST_WAIT_MS } from '../operations/attempts.ts';
import { appendJobEvent } from '../operations/jobs.ts';
import { workflowRow } from '../operations/workflows.ts';
import { JOB, type JobRow, toJob, type WorkflowRow } from '../rows.ts';
import type { Store } from '../store.ts';
import type { Tx, View } from '../transaction.ts';

type ClaimInput = Parameters<Store['jobs']['claim']>[0];

/**
 * Claims jobs one by one, so that no team waits behind the backlog of another team. Each job is taken from the team
 * with the fewest running jobs or, on a tie, from the team served longest ago. Without this tie-break, a team with a
 * backlog would always have the job that is due longest. A node that runs one job at a time would then never serve any
 * other team.
 */
export async function claim(tx: Tx, input: ClaimInput): Promise<ClaimedJob[]> {
  const { nodeId, limit, leaseMs, perTeam, except = [] } = input;
  let teams = await waitingTeams(tx, except);
  const claimed: ClaimedJob[] = [];
  const busy = new Set(input.busy);
  while (claimed.length < limit) {
    teams = teams.filter((team) => team.next !== undefined && team.running < (team.most ?? perTeam));
    const isLast = input.busy !== undefined && claimed.length === limit - 1;
    if (isLast && teams.some(({ teamId }) => busy.has(teamId)) && (await hasSeveralTeams(tx))) {
      teams = teams.filter(({ teamId }) => !busy.has(teamId));
    }
    if (teams.length === 0) break;
    const team = teams.reduce((first, other) => (goesBefore(other, first) ? other : first));
    claimed.push(await start(tx, team.next as DueJob, { nodeId, leaseMs }));
    busy.add(team.teamId);
    team.running += 1;
    team.claimedAt = tx.now;
    team.next = await nextJob(tx, team);
  }
  return claimed;
}

/** A team with waiting jobs. */
interface WaitingTeam {
  teamId: string;
  running: number;
  /** The maximum number of running jobs from the team's own quota. Null if the team has no such quota. */
  most: number | null;
  /** When a job of the team was last claimed. */
  claimedAt: number;
  /** The priorities of the team's waiting jobs, highest first. A priority is dropped once none of its jobs is due. */
  priorities: number[];
  /** Ids of the team's workflows that this node must not run, as a JSON array. */
  except: string;
  next: DueJob | undefined;
}

type DueJob = Pick<JobRow, 'teamId' | 'id' | 'attempt' | 'runAt' | 'startedAt'>;

function goesBefore(one: WaitingTeam, other: WaitingTeam): boolean {
  if (one.running !== other.running) return one.running < other.running;
  if (one.claimedAt !== other.claimedAt) return one.claimedAt < other.claimedAt;
  return (one.next?.runAt ?? 0) < (other.next?.runAt ?? 0);
}

// Each step seeks the next team and, within a team, the next priority in the partial index `job_due`. The query repeats
// the condition of the index, which leaves out parked jobs. The cost grows with the number of teams and priorities, not
// with the number of waiting jobs.
const LEVELS = `
  with recursive
    waiting (team_id) as (
      select * from (
        select team_id from job indexed by job_due
        where state in ('queued', 'retrying') and slot = 0 and parked = 0
        order by team_id limit 1)
      union all
      select (select team_id from job indexed by job_due
              where state in ('queued', 'retrying') and slot = 0 and parked = 0 and team_id > waiting.team_id
              order by team_id limit 1)
      from waiting where team_id is not null
    ),
    level (team_id, priority) as (
      select team_id,
             (select priority from job indexed by job_due
              where state in ('queued', 'retrying') and slot = 0 and parked = 0 and team_id = waiting.team_id
              order by priority desc limit 1)
      from waiting where team_id is not null
      union all
      select team_id,
             (select priority from job indexed by job_due
              where state in ('queued', 'retrying') and slot = 0 and parked = 0 and team_id = level.team_id
                and priority < level.priority
              order by priority desc limit 1)
      from level where priority is not null
    )`;
const WAITING = `${LEVELS}
  select level.team_id as "teamId", level.priority, team.claimed_at as "claimedAt", quota.most
  from level join team on team.id = level.team_id
    left join quota on quota.team_id = level.team_id and quota.name = 'runningJobs'
  where level.priority is not null`;

const NEXT_DUE_AT = `${LEVELS}
  select min((select run_at from job indexed by job_due
              where state in ('queued', 'retrying') and slot = 0 and parked = 0 and team_id = level.team_id
                and priority = level.priority order by run_at limit 1)) as at
  from level where priority is not null`;

export async function nextDueAt(view: View): Promise<number | null> {
  return (await view.db.get<{ at: number | null }>(NEXT_DUE_AT))?.at ?? null;
}

interface WaitingRow {
  teamId: string;
  priority: number;
  claimedAt: number;
  most: number | null;
}

async function waitingTeams(tx: Tx, except: NonNullable<ClaimInput['except']>): Promise<WaitingTeam[]> {
  const running = await runningByTeam(tx);
  const teams = new Map<string, WaitingTeam>();
  for (const row of await tx.db.all<WaitingRow>(WAITING)) {
    const teamId = row.teamId;
    const team = teams.get(teamId);
    if (team !== undefined) {
      team.priorities.push(row.priority);
      continue;
    }
    teams.set(teamId, {
      teamId,
      running: running.get(teamId) ?? 0,
      most: row.most,
      // A time in the future was stored before the clock was set back, so it is ignored.
      claimedAt: row.claimedAt > tx.now ? 0 : row.claimedAt,
      priorities: [row.priority],
      except: JSON.stringify(
        except.filter((one) => one.teamId === teamId).map(({ workflowId }) => workflowId),
      ),
      next: undefined,
    });
  }
  for (const team of teams.values()) {
    team.priorities.sort((one, other) => other - one);
    team.next = await nextJob(tx, team);
  }
  return [...teams.values()];
}

/** Reads only the index `job_running`. */
async function runningByTeam(view: View): Promise<Map<string, number>> {
  const rows = await view.db.all<{ teamId: string; running: number }>(
    `select team_id as "teamId", count(*) as running from job indexed by job_running where state = 'running' group by team_id`,
  );
  return new Map(rows.map(({ teamId, running }) => [teamId, running]));
}

const NEXT = `
  select team_id as "teamId", id, attempt, run_at as "runAt", started_at as "startedAt" from job indexed by job_due
  where state in ('queued', 'retrying') and slot = 0 and parked = 0 and team_id = ? and priority = ?
    and workflow_id not in (select value from json_each(?))`;

/**
 * Returns the team's next job. Of the highest priority that has a due job, this is the job that has been due longest.
 */
async function nextJob(tx: Tx, team: WaitingTeam): Promise<DueJob | undefined> {
  for (let priority = team.priorities[0]; priority !== undefined; priority = team.priorities[0]) {
    const at = [team.teamId, priority, team.except];
    const due =
      (await tx.db.get<DueJob>(`${NEXT} and run_at <= ? order by run_at limit 1`, ...at, tx.now)) ??
      (await tx.db.get<DueJob>(
        `${NEXT} and run_at > ? order by run_at limit 1`,
        ...at,
        tx.now + LONGEST_WAIT_MS,
      ));
    if (due !== undefined) return due;
    team.priorities.shift();
  }
  return undefined;
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
