/**
 * Whose turn it is to start a job. Teams take turns, so that no team's backlog delays another team. The team with the
 * fewest running jobs comes first; on a tie, the team that was served longest ago. Without this tie-break, a team with a
 * backlog would always have the job that is due longest. A node that runs one job at a time would then never serve any
 * other team.
 */

/** A team with due jobs. */
export interface Competitor {
  teamId: string;
  running: number;
  /** Maximum number of running jobs. */
  most: number;
  /** When the team was last served: a larger number is later. */
  served: number;
  /** When its due jobs were due, in the order in which they start. */
  dueAt: readonly number[];
}

/** Whether a team may start a job. */
export function canStart({ running, most, dueAt }: Competitor): boolean {
  return running < most && dueAt.length > 0;
}

/**
 * Returns the team for each of `limit` places, in order. The rank of a job is the number of jobs that its team would have
 * running if the job started. Starting the jobs with the lowest ranks first therefore gives teams turns.
 */
export function ranked(teams: readonly Competitor[], limit: number): string[] {
  return teams
    .flatMap(({ teamId, running, most, served, dueAt }) =>
      dueAt.slice(0, Math.max(0, most - running)).map((at, n) => ({
        teamId,
        rank: running + n,
        served: n === 0 ? served : Number.MAX_SAFE_INTEGER,
        at,
      })),
    )
    .sort(
      (one, other) =>
        one.rank - other.rank ||
        one.served - other.served ||
        one.at - other.at ||
        (one.teamId < other.teamId ? -1 : 1),
    )
    .slice(0, limit)
    .map(({ teamId }) => teamId);
}
