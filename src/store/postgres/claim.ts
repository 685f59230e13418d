/**
 * Claims due jobs for a node, fairly between teams, while other nodes do the same.
 *
 * First, one statement ranks the due jobs and locks them, skipping those that another node has locked. Then the rows of
 * their teams are locked, as every claim does, and their running jobs counted: of the locked jobs, those within
 * `perTeam` are started. Locked teams are skipped as well, because a transaction that hangs with one would block the
 * jobs of all. The claim goes on without them, and waits for them at the end, one after the other and for a moment only:
 * every event of a team is written under this lock, so that a team with many calls is hardly ever found unlocked. All
 * waits together have a limit as well, because the jobs that were claimed before them begin, and have their leases
 * renewed, only when the claim has ended.
 */
import { Problem } from '../../model/error.ts';
import { MAX_BACKOFF_MS } from '../../model/workflow.ts';
import type { Clock } from '../../std/clock.ts';
import type { ClaimedJob, JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import { appendJobEvent } from '../operations/jobs.ts';
import type { Tx } from '../sql.ts';
import type { WorkflowRow } from '../workflow-row.ts';
import { toWorkflow } from '../workflow-row.ts';
import { type Bounds, ClaimBounds, WAITS } from './claim-bounds.ts';

type ClaimInput = Parameters<JobOperations['claim']>[0];

/** One attempt to claim: without some teams, and with what this node remembers. */
interface Asked extends ClaimInput {
  without: readonly string[];
  /** The only team to claim from, whose lock is waited for; null to claim from all that are not locked. */
  waitFor: string | null;
  bounds: Bounds;
  /** Teams that jobs were claimed from, the most recent last. */
  served: readonly string[];
}

/** No job waits this long: one that is dated further ahead was queued before the clock was set back, and is due. */
const LONGEST_WAIT_MS = 2 * MAX_BACKOFF_MS;

/** Teams whose turn is remembered, in memory; others count as never served. */
const MAX_SERVED = 1_000;

/** Teams of which a wait in vain is remembered. */
const MAX_HUNG = 1_000;

/** How long to wait for a team's lock: its calls queue for it, each of which holds it for some milliseconds. */
const LOCK_MS = 500;

/** When no further team is waited for: after the first wait, where jobs were claimed, which wait meanwhile. */
const WAITS_MS = { withJobs: LOCK_MS, withoutJobs: 2_000 };

/** After waiting in vain a team is not waited for so long, because everybody's jobs wait with it. */
const HUNG_MS = 5_000;

/** The jobs claimed in one transaction, and the teams that were skipped because they were locked. */
interface Claimed {
  jobs: ClaimedJob[];
  locked: string[];
  /** Whether the last place was left for a team that runs nothing here. */
  isLastLeft: boolean;
}

/**
 * Makes `claim` from its transaction: for all teams, then without the locked ones, then for each of these.
 *
 * When it rejects, jobs of this node may be running in the table that nobody was told of, including those of earlier
 * transactions of the same claim.
 */
export function claiming(running: {
  claim(input: Asked): Promise<Claimed>;
  survey(input: undefined): Promise<Bounds>;
  now: Clock;
}): JobOperations['claim'] {
  const known = new ClaimBounds(running.survey);
  const served = new Set<string>();
  /**
   * The teams that were waited for in vain, and until when they are not waited for again, by the monotonic clock. They
   * stay in it until a wait succeeds, because those that were waited for longest ago, or never, are first.
   */
  const hung = new Map<string, number>();
  return async (input) => {
    const bounds = await known.next(running.now());
    const claimed: ClaimedJob[] = [];
    /** Returns the teams that it found locked. */
    const more = async (part: Pick<Asked, 'without' | 'waitFor'>): Promise<string[]> => {
      const limit = input.limit - claimed.length;
      const busy = input.busy && { busy: [...input.busy, ...claimed.map(({ job }) => job.teamId)] };
      const asked = { ...input, ...busy, ...part, limit, bounds, served: [...served] };
      const { jobs, locked, isLastLeft } = await running.claim(asked);
      claimed.push(...jobs);
      for (const { job } of jobs) noteServed(served, job.teamId);
      // A team that runs nothing here may have its turn later: it is asked for alone.
      if (isLastLeft && limit > 1) return [...locked, ...(await more(part))];
      return locked;
    };
    const locked = await more({ without: [], waitFor: null });
    if (locked.length === 0 || claimed.length === input.limit) return claimed;
    locked.push(...((await unlessBusy(more({ without: locked, waitFor: null }))) ?? []));
    locked.sort((one, other) => (hung.get(one) ?? 0) - (hung.get(other) ?? 0));
    const startMs = performance.now();
    for (const teamId of locked) {
      if (claimed.length === input.limit) break;
      const nowMs = performance.now();
      if (nowMs - startMs >= (claimed.length > 0 ? WAITS_MS.withJobs : WAITS_MS.withoutJobs)) break;
      if ((hung.get(teamId) ?? 0) > nowMs) break;
      hung.delete(teamId);
      if ((await unlessBusy(more({ without: [], waitFor: teamId }))) !== undefined) continue;
      noteHung(hung, teamId);
    }
    return claimed;
  };
}

/**
 * Undefined when the database was too busy: that transaction claimed nothing. Of any other failure it is unknown whether
 * it was committed, and whoever claims has to hear of it.
 */
function unlessBusy<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'database_busy') return undefined;
    throw error;
  });
}

function noteHung(hung: Map<string, number>, teamId: string): void {
  hung.set(teamId, performance.now() + HUNG_MS);
  const [longestAgo] = hung.keys();
  if (hung.size > MAX_HUNG && longestAgo !== undefined) hung.delete(longestAgo);
}

function noteServed(served: Set<string>, teamId: string): void {
  served.delete(teamId);
  served.add(teamId);
  for (const longestAgo of served) {
    if (served.size <= MAX_SERVED) return;
    served.delete(longestAgo);
  }
}

export async function claim(tx: Tx, asked: Asked): Promise<Claimed> {
  const { limit, busy } = asked;
  const isForOthers = limit === 1 && busy !== undefined && busy.length > 0 && (await hasSeveralTeams(tx));
  const input = isForOthers ? { ...asked, without: [...asked.without, ...busy] } : asked;
  const free = await lockDue(tx, input);
  if (free.length === 0) return { jobs: [], locked: [], isLastLeft: false };
  const [room, workflows] = await Promise.all([roomOf(tx, free, input), workflowsOf(tx, free)]);
  const locked = [...new Set(free.map((job) => job.team_id))].filter((teamId) => !room.has(teamId));
  const taken = free.filter((job) => takeRoom(room, job.team_id));
  const last = taken[limit - 1]?.team_id;
  const isLastLeft =
    busy !== undefined &&
    last !== undefined &&
    (busy.includes(last) || taken.slice(0, -1).some((job) => job.team_id === last)) &&
    (await hasSeveralTeams(tx));
  const jobs = taken.slice(0, isLastLeft ? -1 : limit).map((job) => started(tx, job, input));
  if (jobs.length === 0) return { jobs: [], locked, isLastLeft };
  for (const job of jobs) if (job.attempt === 1) appendJobEvent(tx, job, 'workflow_started');
  await save(tx, jobs, input);
  const claimed = jobs.map((job, at) => {
    const workflow = workflows.get(nameOf(job.team_id, job.workflow_id)) as WorkflowRow;
    return {
      // As on SQLite: when it was due.
      job: { ...toJob(job), runAt: (taken[at] as JobRow).run_at },
      workflow: toWorkflow(workflow),
      state: workflow.state === null ? null : JSON.parse(workflow.state),
    };
  });
  return { jobs: claimed, locked, isLastLeft };
}

async function hasSeveralTeams(tx: Tx): Promise<boolean> {
  return (await tx.db.all('select 1 from team limit 2')).length > 1;
}

/** Waiting jobs, from the bound on: the dead entries before it are never read. */
const MAY_WAIT = `${WAITS} and job.run_at >= $10`;

/** The team of each running job: of those claimed since the bound, and of the named older ones. */
const runningTeams = (since: string, teams: string, ids: string, among = '') => `
  select job.team_id from job where job.state = 'running' and job.run_at >= ${since} ${among}
  union all
  select job.team_id from unnest(${teams}::text[], ${ids}::text[]) as named (team_id, id)
  cross join lateral (
    select * from job where job.team_id = named.team_id and job.id = named.id limit 1
  ) job
  where job.state = 'running' and job.run_at < ${since} ${among}`;

/** The due jobs of one team and priority that may run here, those due longest first. */
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

// Teams take turns, so that no team's backlog delays another team: first the team with the fewest running jobs, and
// between equals the one served longest ago. Each job is ranked by how many jobs its team would then have running;
// taking the lowest ranks first is taking turns.
//
// `waiting` and `level` are loose index scans: they seek from team to team and from priority to priority in the index
// `job_due`, at a cost that depends on the number of teams and priorities, not on the number of waiting jobs.
const DUE = `
  with recursive
    excepted as materialized (
      select * from unnest($6::text[], $7::text[]) as excepted (team_id, workflow_id)
    ),
    waiting (team_id) as (
      (select job.team_id from job where ${MAY_WAIT} order by job.team_id limit 1)
      union all
      select (select job.team_id from job where ${MAY_WAIT} and job.team_id > waiting.team_id
              order by job.team_id limit 1)
      from waiting where waiting.team_id is not null
    ),
    running as materialized (
      select team_id, count(*)::integer as jobs from (${runningTeams('$13', '$11', '$12')}) counted
      group by team_id
    ),
    served as materialized (
      select * from unnest($14::text[]) with ordinality as served (team_id, turn)
    ),
    open as materialized (
      select waiting.team_id, coalesce(running.jobs, 0) as running, coalesce(served.turn, 0) as served,
             coalesce(quota.most, $3) as most
      from waiting
      left join quota on quota.team_id = waiting.team_id and quota.name = 'runningJobs'
      left join running on running.team_id = waiting.team_id
      left join served on served.team_id = waiting.team_id
      where waiting.team_id is not null and coalesce(running.jobs, 0) < coalesce(quota.most, $3)
        and not waiting.team_id = any($9::text[])
        and waiting.team_id = coalesce($15, waiting.team_id)
    ),
    turn as materialized (
      select * from open order by running, served, team_id limit $8
    ),
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
    ),
    candidate as materialized (
      select turn.team_id, turn.running, turn.served, turn.most, due.id, due.attempt, due.run_at,
             row_number() over (partition by turn.team_id
                                order by level.priority desc, due.misdated, due.run_at, due.id) as place
      from turn
      join level on level.team_id = turn.team_id and level.priority is not null
      cross join lateral (${next('$4')}) due
    ),
    ranked as materialized (
      select team_id, id, attempt,
             row_number() over (order by running + place, case place when 1 then served end nulls last,
                                         run_at, team_id, place) as rank
      from candidate where running + place <= most
      order by rank limit $4
    ),
    free as materialized (
      select job.*, ranked.rank
      from ranked join job on job.team_id = ranked.team_id and job.id = ranked.id
      -- Not the condition of job_due: without statistics the planner would scan that index from end to end.
      where job.state in ('queued', 'retrying') and job.slot + job.parked = 0 and job.attempt = ranked.attempt
      order by ranked.rank limit $5
      for update of job skip locked
    )
  select free.*, counted.teams
  from (select count(*) as teams from open) counted left join free on true
  order by free.rank`;

/** Looks at the teams whose turn it is; only when these have too few due jobs, at all teams. */
async function lockDue(tx: Tx, input: Asked): Promise<JobRow[]> {
  // Another node may be locking as many at this moment.
  const candidates = 2 * input.limit + 8;
  const { jobs, teams } = await lockDueOf(tx, input, { candidates, teams: candidates });
  if (jobs.length === input.limit || teams <= candidates) return jobs;
  return (await lockDueOf(tx, input, { candidates, teams })).jobs;
}

/** The due jobs, locked, in the order of their turns, and how many teams have waiting jobs and room to run them. */
async function lockDueOf(
  tx: Tx,
  { limit, perTeam, except = [], without, waitFor, bounds, served }: Asked,
  most: { candidates: number; teams: number },
): Promise<{ jobs: JobRow[]; teams: number }> {
  const rows = await tx.db.all<(JobRow | { id: null }) & { teams: number }>(
    DUE,
    tx.now,
    tx.now + LONGEST_WAIT_MS,
    perTeam,
    most.candidates,
    limit,
    except.map(({ teamId }) => teamId),
    except.map(({ workflowId }) => workflowId),
    most.teams,
    without,
    bounds.waitingSince,
    bounds.running.map(({ teamId }) => teamId),
    bounds.running.map(({ id }) => id),
    bounds.runningSince,
    served,
    waitFor,
  );
  return {
    jobs: rows.filter((row): row is JobRow & { teams: number } => row.id !== null),
    teams: rows[0]?.teams ?? 0,
  };
}

/**
 * Locks the teams that are not locked, in the order of their ids, as everybody who locks several does, or the one to
 * wait for. Returns how many more jobs each may run; teams that were locked are missing.
 */
async function roomOf(
  tx: Tx,
  jobs: readonly JobRow[],
  { perTeam, bounds, waitFor }: Asked,
): Promise<Map<string, number>> {
  const teams = [...new Set(jobs.map((job) => job.team_id))];
  if (waitFor !== null) await tx.db.run(`set local lock_timeout = ${LOCK_MS}`);
  const [open, running, own] = await Promise.all([
    tx.db.all<{ id: string }>(
      `select id from team where id = any($1::text[]) order by id
       for no key update ${waitFor === null ? 'skip locked' : ''}`,
      teams,
    ),
    // A statement of its own, so that it sees everything that was committed before the locks were taken.
    tx.db.all<{ team_id: string; jobs: number }>(
      `select team_id, count(*) as jobs
       from (${runningTeams('$2', '$3', '$4', 'and job.team_id = any($1::text[])')}) counted group by team_id`,
      teams,
      bounds.runningSince,
      bounds.running.map(({ teamId }) => teamId),
      bounds.running.map(({ id }) => id),
    ),
    tx.db.all<{ team_id: string; most: number | null }>(
      `select team_id, most from quota where team_id = any($1::text[]) and name = 'runningJobs'`,
      teams,
    ),
  ]);
  const most = new Map(own.map((row) => [row.team_id, row.most]));
  const counted = new Map(running.map((row) => [row.team_id, row.jobs]));
  return new Map(open.map(({ id }) => [id, (most.get(id) ?? perTeam) - (counted.get(id) ?? 0)]));
}

function takeRoom(room: Map<string, number>, teamId: string): boolean {
  const left = room.get(teamId) ?? 0;
  room.set(teamId, left - 1);
  return left > 0;
}

function started(tx: Tx, job: JobRow, { nodeId, leaseMs }: ClaimInput): JobRow {
  return {
    ...job,
    state: 'running',
    attempt: job.attempt + 1,
    node_id: nodeId,
    lease_until: tx.now + leaseMs,
    progress: null,
    process_pid: null,
    process_started_at: null,
    started_at: job.started_at ?? tx.now,
    // While a job runs, this is when it was claimed: the index `job_running` is ordered by it.
    run_at: tx.now,
  };
}

async function save(tx: Tx, jobs: readonly JobRow[], { nodeId, leaseMs }: ClaimInput): Promise<void> {
  await tx.db.run(
    `update job
     set state = 'running', attempt = job.attempt + 1, node_id = $3, lease_until = $4, progress = null, run_at = $5,
         process_pid = null, process_started_at = null, started_at = coalesce(job.started_at, $5)
     from unnest($1::text[], $2::text[]) as taken (team_id, id)
     where job.team_id = taken.team_id and job.id = taken.id`,
    jobs.map((job) => job.team_id),
    jobs.map((job) => job.id),
    nodeId,
    tx.now + leaseMs,
    tx.now,
  );
}

async function workflowsOf(tx: Tx, jobs: readonly JobRow[]): Promise<Map<string, WorkflowRow>> {
  const rows = await tx.db.all<WorkflowRow>(
    `select workflow.* from unnest($1::text[], $2::text[]) as wanted (team_id, id)
     join workflow on workflow.team_id = wanted.team_id and workflow.id = wanted.id`,
    jobs.map((job) => job.team_id),
    jobs.map((job) => job.workflow_id),
  );
  return new Map(rows.map((row) => [nameOf(row.team_id, row.id), row]));
}

function nameOf(teamId: string, workflowId: string): string {
  return `${teamId} ${workflowId}`;
}
