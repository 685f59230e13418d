/** The statements with which a claim searches and starts the jobs of one team. Each reads rows of this team only. */

import { OF_JOB } from '../rows.ts';
import { MAX_NAMED } from './claim-bounds.ts';

/**
 * Values of the statements: $1 team, $2 bound of waiting jobs, $3 now, $4 the time after which a date is too far ahead,
 * $5 ids of excluded workflows, $6 and $7 bounds of running jobs, $8 maximum number of jobs. The condition of the
 * index `job_due` is repeated, because a query can use the index only then. Dead index entries before the bound are
 * never read.
 */
const WAITS = `job.team_id = $1 and job.state in ('queued', 'retrying') and job.slot = 0 and job.parked = 0
  and job.run_at >= $2`;

/** Counts running jobs: those claimed since the bound, and older ones that the bounds list by id. */
const RUNNING = `
  (select count(*) from job where job.team_id = $1 and job.state = 'running' and job.run_at >= $6)
  + (select count(*) from unnest($7::text[]) as named (id) cross join lateral (
       select * from job where job.team_id = $1 and job.id = named.id limit 1
     ) job where job.state = 'running' and job.run_at < $6)`;

/** The team's own limit of running jobs, if any. */
const QUOTA = `(select most from quota where team_id = $1 and name = 'runningJobs')`;

/** Seeks from priority to priority in the index `job_due`. The cost does not depend on the number of waiting jobs. */
const LEVEL = `
  level (priority) as (
    (select job.priority from job where ${WAITS} order by job.priority desc limit 1)
    union all
    select (select job.priority from job where ${WAITS} and job.priority < level.priority
            order by job.priority desc limit 1)
    from level where level.priority is not null
  )`;

/** Selects due jobs of one priority that this node may run. The job that has been due longest comes first. */
const due = (limit: string) => `
  (select job.id, job.attempt, job.run_at, 0 as misdated from job
   where ${WAITS} and job.priority = level.priority and job.run_at <= $3
     and not job.workflow_id = any($5::text[])
   order by job.run_at limit ${limit})
  union all
  (select job.id, job.attempt, job.run_at, 1 from job
   where ${WAITS} and job.priority = level.priority and job.run_at > $4
     and not job.workflow_id = any($5::text[])
   order by job.run_at limit ${limit})`;

const IN_TEAM = 'level.priority desc, due.misdated, due.run_at, due.id';

/** $9: the end of a survey. The times of due jobs are numbers, because arrays of bigint are read as text. */
export const SEARCH = `
  with recursive ${LEVEL}
  select
    (${RUNNING})::integer as running,
    ${QUOTA} as most,
    (select jobs_at from team where id = $1) as "storedAt",
    (select min((select job.run_at from job where ${WAITS} and job.priority = level.priority
                 order by job.run_at limit 1))
     from level where level.priority is not null) as "firstAt",
    array(select due.run_at::float8 from level cross join lateral (${due('$8::integer')}) due
          where level.priority is not null order by ${IN_TEAM} limit $8) as "dueAt",
    array(select job.id from job where job.team_id = $1 and job.state = 'running' and job.run_at < $9
          order by job.run_at limit ${MAX_NAMED + 1}) as old`;

/**
 * $9: the limit of running jobs without a quota; $10 the node; $11 the end of the lease. Locks up to eight jobs more
 * than may start, because other transactions may have locked some. The `run_at` of a running job is the time of its
 * claim, because `run_at` orders the index `job_running`.
 */
export const TAKE = `
  with recursive
    ${LEVEL},
    room as materialized (select coalesce(${QUOTA}, $9) - (${RUNNING}) as jobs),
    candidate as materialized (
      select due.id, due.attempt, row_number() over (order by ${IN_TEAM}) as place
      from level cross join lateral (${due('$8::integer + 8')}) due
      where level.priority is not null
    ),
    free as materialized (
      select job.id, job.run_at as due_at, candidate.place
      -- Each job is looked up separately. With a join, the planner might read all jobs of the team.
      from candidate cross join lateral (
        select * from job where job.team_id = $1 and job.id = candidate.id
          and job.state in ('queued', 'retrying') and job.slot + job.parked = 0 and job.attempt = candidate.attempt
        limit 1 for update skip locked
      ) job
      where candidate.place <= $8::integer + 8
      order by candidate.place limit (select least(greatest(jobs, 0), $8) from room)
    )
  update job
  set state = 'running', attempt = job.attempt + 1, node_id = $10, lease_until = $11, progress = null, run_at = $3,
      process_pid = null, process_started_at = null, started_at = coalesce(job.started_at, $3)
  -- The list shows the planner that few jobs are looked up by their key.
  where job.team_id = $1 and job.id = any(array(select id from free))
  returning ${OF_JOB}, (select due_at from free where free.id = job.id) as "dueAt",
    (select place from free where free.id = job.id) as place`;

/** When the first waiting job is due. Takes only $1 and $2. */
export const FIRST = `
  with recursive ${LEVEL}
  select min((select job.run_at from job where ${WAITS} and job.priority = level.priority
              order by job.run_at limit 1)) as at
  from level where level.priority is not null`;
