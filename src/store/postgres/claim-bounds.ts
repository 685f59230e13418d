/**
 * Bounds from which claims start to search. During a long transaction, the indexes of waiting and of running jobs keep
 * a dead entry for every job that was ever in them. A search that starts after the dead entries does not read them
 * again.
 *
 * A job enters these indexes with a date no earlier than the start of the transaction that writes it. So no entry can
 * be added that is older than every open transaction. Between two surveys, the only waiting or running jobs that old
 * are the ones that the last survey found.
 */
import type { Clock } from '../../std/clock.ts';
import type { View } from '../transaction.ts';

/**
 * Maximum time between reading the clock and committing. If a transaction takes longer, claims find its job only after
 * the next survey.
 */
const TRANSACTION_MS = 10_000;
/** A survey follows after this many claims, or after this time if claims are rare. */
const SURVEY_EVERY = 60;
const SURVEY_EVERY_MS = 60_000;
/**
 * Maximum number of long-running jobs to list. If there are more, none is listed, and every claim counts all running
 * jobs.
 */
const MAX_NAMED = 1_000;

/** What claims can skip. */
export interface Bounds {
  /** Every waiting job is due at this time or later, in epoch milliseconds. */
  waitingSince: number;
  /** Every running job that was claimed before this time, in epoch milliseconds, is listed in `running`. */
  runningSince: number;
  running: readonly { teamId: string; id: string }[];
}

const NONE: Bounds = { waitingSince: -1, runningSince: -1, running: [] };

/** The bounds of one process, renewed by a survey every 60 claims, and at least every 60 s. */
export class ClaimBounds {
  readonly #survey: (input: undefined) => Promise<Bounds>;
  readonly #elapsed: Clock;
  #bounds = NONE;
  /** Claims since the last survey. */
  #claims = 0;
  #surveyedAtMs: number;
  #lastMs = 0;

  /** @param elapsed returns milliseconds of a monotonic clock */
  constructor(survey: (input: undefined) => Promise<Bounds>, elapsed: Clock = () => performance.now()) {
    this.#survey = survey;
    this.#elapsed = elapsed;
    this.#surveyedAtMs = elapsed();
  }

  /** The bound of the last claim. */
  get waitingSince(): number {
    return this.#bounds.waitingSince;
  }

  /** The bounds for one claim. */
  async next(nowMs: number): Promise<Bounds> {
    // If the clock was set back, new jobs may be dated before the bounds, so the bounds are dropped.
    if (nowMs < this.#lastMs) this.#bounds = NONE;
    this.#lastMs = nowMs;
    this.#claims += 1;
    const elapsedMs = this.#elapsed();
    if (this.#claims >= SURVEY_EVERY || elapsedMs - this.#surveyedAtMs >= SURVEY_EVERY_MS) {
      this.#claims = 0;
      this.#surveyedAtMs = elapsedMs;
      this.#bounds = await this.#survey(undefined);
    }
    return this.#bounds;
  }
}

/** The condition of the index `job_due`. A query can use the index only if it repeats this condition. */
export const WAITS = `job.state in ('queued', 'retrying') and job.slot = 0 and job.parked = 0`;

// The oldest waiting job of each team and priority, dated after the bound `$1`: one seek per team and priority in the
// index `job_due`.
const OLDEST = `
  with recursive oldest (team_id, priority, run_at) as (
    (select job.team_id, job.priority, job.run_at from job where ${WAITS} and job.run_at >= $1
     order by job.team_id, job.priority desc, job.run_at limit 1)
    union all
    select next.* from oldest cross join lateral (
      (select job.team_id, job.priority, job.run_at from job
       where ${WAITS} and job.run_at >= $1 and job.team_id = oldest.team_id and job.priority < oldest.priority
       order by job.priority desc, job.run_at limit 1)
      union all
      (select job.team_id, job.priority, job.run_at from job
       where ${WAITS} and job.run_at >= $1 and job.team_id > oldest.team_id
       order by job.team_id, job.priority desc, job.run_at limit 1)
      limit 1
    ) next
  )
  select min(run_at) as at from oldest`;
const RUNNING = `select team_id as "teamId", id from job where state = 'running' and run_at < $1 limit $2`;

/** When the first waiting job that is dated after a bound is due; null if no job is waiting. */
export async function oldest(view: View, { since }: { since: number }): Promise<number | null> {
  return (await view.db.get<{ at: number | null }>(OLDEST, since))?.at ?? null;
}

/** Searches all waiting and all running jobs. */
export async function survey(view: View): Promise<Bounds> {
  const since = view.now - TRANSACTION_MS;
  const oldestAt = await oldest(view, { since: NONE.waitingSince });
  const running = await view.db.all<{ teamId: string; id: string }>(RUNNING, since, MAX_NAMED + 1);
  const waitingSince = Math.min(oldestAt ?? since, since);
  return running.length > MAX_NAMED
    ? { ...NONE, waitingSince }
    : { waitingSince, runningSince: since, running };
}
