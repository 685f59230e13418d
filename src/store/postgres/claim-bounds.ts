/**
 * Where claims start to search. During a long transaction, the indexes of waiting and of running jobs keep a dead entry for
 * every job that was ever in them; a search that starts after those entries does not read them again.
 *
 * A job enters these indexes with a date no earlier than the start of the transaction that writes it. So entries older than
 * any transaction can no longer be added: between two surveys, the only such jobs that wait or run are those that the last
 * survey found.
 */
import type { View } from '../transaction.ts';

/** Maximum time between reading the clock and committing. If a transaction takes longer, the next survey finds its job. */
const TRANSACTION_MS = 10_000;
/** Claims between two surveys. */
const SURVEY_EVERY = 60;
/** If more jobs than this run for a long time, they are not listed, and every claim counts all running jobs. */
const MAX_NAMED = 1_000;

/** What claims can skip. */
export interface Bounds {
  /** No waiting job is dated before this, in epoch milliseconds. */
  waitingSince: number;
  /** Running jobs that were claimed before this, in epoch milliseconds, are listed in `running`. */
  runningSince: number;
  running: readonly { teamId: string; id: string }[];
}

const NONE: Bounds = { waitingSince: -1, runningSince: -1, running: [] };

/** The bounds of one process, renewed by a survey every 60 claims. */
export class ClaimBounds {
  readonly #survey: (input: undefined) => Promise<Bounds>;
  #bounds = NONE;
  #claims = 0;
  #lastMs = 0;

  constructor(survey: (input: undefined) => Promise<Bounds>) {
    this.#survey = survey;
  }

  /** The bounds for one claim. */
  async next(nowMs: number): Promise<Bounds> {
    this.#claims += 1;
    // After the clock was set back, new jobs are dated before the bounds.
    if (nowMs < this.#lastMs) this.#bounds = NONE;
    this.#lastMs = nowMs;
    if (this.#claims % SURVEY_EVERY === 0) this.#bounds = await this.#survey(undefined);
    return this.#bounds;
  }
}

/** The condition of the index `job_due`, which every query that uses it must repeat. */
export const WAITS = `job.state in ('queued', 'retrying') and job.slot = 0 and job.parked = 0`;

// The oldest waiting job of each team and priority: one seek per team and priority in the index `job_due`.
const OLDEST = `
  with recursive oldest (team_id, priority, run_at) as (
    (select job.team_id, job.priority, job.run_at from job where ${WAITS}
     order by job.team_id, job.priority desc, job.run_at limit 1)
    union all
    select next.* from oldest cross join lateral (
      (select job.team_id, job.priority, job.run_at from job
       where ${WAITS} and job.team_id = oldest.team_id and job.priority < oldest.priority
       order by job.priority desc, job.run_at limit 1)
      union all
      (select job.team_id, job.priority, job.run_at from job where ${WAITS} and job.team_id > oldest.team_id
       order by job.team_id, job.priority desc, job.run_at limit 1)
      limit 1
    ) next
  )
  select min(run_at) as at from oldest`;
const RUNNING = `select team_id as "teamId", id from job where state = 'running' and run_at < $1 limit $2`;

/** Searches all waiting and all running jobs. */
export async function survey(view: View): Promise<Bounds> {
  const since = view.now - TRANSACTION_MS;
  const oldest = await view.db.get<{ at: number | null }>(OLDEST);
  const running = await view.db.all<{ teamId: string; id: string }>(RUNNING, since, MAX_NAMED + 1);
  const waitingSince = Math.min(oldest?.at ?? since, since);
  return running.length > MAX_NAMED
    ? { ...NONE, waitingSince }
    : { waitingSince, runningSince: since, running };
}
