/**
 * Whose turn it is to start a job. Teams take turns, so that no team's backlog delays another team. The team with the
 * fewest running jobs comes first; on a tie, the team that was served longest ago. Without this tie-break, a team with a
 * backlog would always have the job that is due longest. A node that runs one job at a time would then never serve any
 * other team.
 */

/** How many more teams than places a search begins with, because some may have no due jobs. */
const SPARE = 4;
/** Maximum number of teams that are searched together. */
const MAX_SEARCHED = 64;

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

/** Where the teams of a claim come from. */
export interface Teams {
  /** The teams that were searched, by id. */
  searched: Map<string, Competitor>;
  /** Ids of other teams that may have due jobs, in the order in which they are searched. */
  rest: string[];
  search(teamIds: readonly string[]): Promise<Competitor[]>;
  hasSeveral(): Promise<boolean>;
}

/**
 * Returns the id of the team for each place, in order. Searches teams until each place can go to another team.
 *
 * @param input.busy the teams with running jobs on this node. If it is set, the last place is reserved for other teams,
 *   unless there is a single team, which may use the whole capacity of a node
 */
export async function turnsOf(
  input: { limit: number; busy?: readonly string[] },
  { searched, rest, search, hasSeveral }: Teams,
): Promise<string[]> {
  const { limit } = input;
  for (;;) {
    const teams = [...searched.values()];
    const turns = await withLastPlace(input, teams, hasSeveral);
    const isEnough = turns.length === limit && teams.filter(canStart).length >= limit;
    if (isEnough || rest.length === 0) return turns;
    const next = rest.splice(0, Math.min(MAX_SEARCHED, Math.max(limit + SPARE, searched.size)));
    for (const team of await search(next)) searched.set(team.teamId, team);
  }
}

async function withLastPlace(
  { limit, busy }: Parameters<typeof turnsOf>[0],
  teams: readonly Competitor[],
  hasSeveral: () => Promise<boolean>,
): Promise<string[]> {
  const found = ranked(teams, limit);
  const last = found[limit - 1];
  if (busy === undefined || last === undefined) return found;
  const before = found.slice(0, -1);
  const having = new Set([...busy, ...before]);
  if (!having.has(last) || !(await hasSeveral())) return found;
  const others = teams.filter(({ teamId }) => !having.has(teamId));
  return [...before, ...ranked(others, 1)];
}

/** Whether a team may start a job. */
function canStart({ running, most, dueAt }: Competitor): boolean {
  return running < most && dueAt.length > 0;
}

/**
 * Returns the team for each of `limit` places, in order. The rank of a job is the number of jobs that its team would have
 * running if the job started. Starting the jobs with the lowest ranks first therefore gives teams turns.
 */
function ranked(teams: readonly Competitor[], limit: number): string[] {
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
