/**
 * Where claims begin to look. As long as anybody holds an old transaction open, the indexes over what waits and what
 * runs keep an entry for every job that ever did; a look that begins behind them does not meet them again.
 *
 * What comes into these indexes is dated at least with the clock of the transaction that brings it. So whatever is
 * older than any transaction is known from one survey to the next: nothing of it waits but what the survey has found,
 * and of what runs it names each.
 */
import type { View } from './transaction.ts';

/** No transaction takes longer from its look at the clock to its commit. What does is found by the next survey. */
const TRANSACTION_MS = 10_000;
/** Claims between two surveys. */
const SURVEY_EVERY = 60;
/** More that run for long are not named: then all that run are counted anew by every claim. */
const MAX_NAMED = 1_000;

/** What claims need not look at. */
export interface Bounds {
  /** Nothing waits that is dated before this, in epoch milliseconds. */
  waitingSince: number;
  /** What runs and was taken up before this, in epoch milliseconds, is among `running`. */
  runningSince: number;
  running: readonly { teamId: string; id: string }[];
}

const NONE: Bounds = { waitingSince: -1, runningSince: -1, running: [] };

/** Keeps the bounds of one process, and says when they must be found anew. */
export class ClaimBounds {
  readonly #survey: (input: undefined) => Promise<Bounds>;
  #bounds = NONE;
  #claims = 0;
  #lastMs = 0;

  constructor(survey: (input: undefined) => Promise<Bounds>) {
    this.#survey = survey;
  }

  /** For one claim. */
  async next(nowMs: number): Promise<Bounds> {
    this.#claims += 1;
    // By a clock that was set back everything is dated before the bounds.
    if (nowMs < this.#lastMs) this.#bounds = NONE;
    this.#lastMs = nowMs;
    if (this.#claims % SURVEY_EVERY === 0) this.#bounds = await this.#survey(undefined);
    return this.#bounds;
  }
}

/** What `job_due` holds: each use of that index repeats its condition. */
export const WAITS = `job.state in ('queued', 'retrying') and job.slot = 0 and job.parked = 0`;

// The oldest of each team and priority: one seek for each by the index `job_due`.
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

/** Looks at everything that waits, and at everything that runs. */
export async function survey(view: View): Promise<Bounds> {
  const since = view.now - TRANSACTION_MS;
  const oldest = await view.db.get<{ at: number | null }>(OLDEST);
  const running = await view.db.all<{ teamId: string; id: string }>(RUNNING, since, MAX_NAMED + 1);
  const waitingSince = Math.min(oldest?.at ?? since, since);
  return running.length > MAX_NAMED
    ? { ...NONE, waitingSince }
    : { waitingSince, runningSince: since, running };
}
