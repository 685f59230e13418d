/**
 * Claims due jobs for a node, fairly between teams, while other nodes do the same.
 *
 *     agenda ──▶ search of a few teams ──▶ how many jobs each may start ──▶ a transaction per team, a few at a time ──▶ jobs
 *                        ▲                   ▲                                 │
 *                        └── places left ────┴── without a team that had fewer jobs, or whose rows are locked
 *
 * The node's memory says which teams may have due jobs (`team-agenda.ts`). As many teams as there are places, and a few
 * more, are searched by plain reads, which lock nothing. The transaction of a team then takes the lock of the team's
 * claims, so that no other node claims jobs of this team until the commit. The transaction counts running jobs, and
 * starts jobs within `perTeam`. Locked rows of one team therefore delay no other team, and transactions that write
 * events delay claims only while they commit. No statement reads rows of more than one team.
 */

import { Problem } from '../../model/error.ts';
import { type Competitor, type Teams, turnsOf } from '../../model/job-turns.ts';
import type { Clock } from '../../std/clock.ts';
import { RAISE_AFTER_MS, raise } from '../operations/agenda.ts';
import { type ClaimedJob, claimedJob, LONGEST_WAIT_MS } from '../operations/attempts.ts';
import { appendJobEvent } from '../operations/jobs.ts';
import { type JobRow, toJob, WORKFLOW, type WorkflowRow } from '../rows.ts';
import type { Value } from '../sql.ts';
import type { Store } from '../store.ts';
import type { Tx, View } from '../transaction.ts';
import { type Bounds, ClaimBounds, NONE, type Survey } from './claim-bounds.ts';
import { FIRST, SEARCH, TAKE } from './claim-statements.ts';
import type { Database } from './database.ts';
import type { TeamAgenda } from './team-agenda.ts';
import { asProblem } from './write.ts';

type ClaimInput = Parameters<Store['jobs']['claim']>[0];

/** What both statements take. */
interface OfTeam {
  /** Not called `teamId`, because the call would then wait for the team's turn at a connection. */
  from: string;
  bounds: Bounds;
  /** Workflows of this team whose jobs this node must not run. */
  except: readonly string[];
  limit: number;
}

interface Searched extends OfTeam {
  /** The end of a survey (see `ClaimBounds`). */
  surveyTo: number;
}

/** What a search finds. */
interface Found extends Survey {
  running: number;
  /** The team's own limit of running jobs. Null if the team has none. */
  most: number | null;
  /** When the team is due by its row. */
  storedAt: number | null;
  /** When jobs that this node may start were due: at most `limit`, in the order in which they start. */
  dueAt: number[];
}

interface Taken extends OfTeam, Pick<ClaimInput, 'nodeId' | 'leaseMs' | 'perTeam'> {}

/** What a node remembers of a team. */
interface Remembered {
  bounds: ClaimBounds;
  /** The number of the claimed job by which the team was last served. 0: never. */
  served: number;
  running: number;
  /** When the running jobs were counted, in milliseconds of the monotonic clock. */
  countedMs: number;
}

/** Maximum number of teams remembered. All other teams count as never served. */
const MAX_REMEMBERED = 10_000;
/** After this time, a count of running jobs is not used any more. */
const COUNTED_MS = 5_000;

/** Maximum number of teams that are searched for the time of the first job. */
const MAX_FIRST = 8;

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

/** How long it is known that there are several teams. */
const SEVERAL_MS = 60_000;

/**
 * Makes `claim` and `nextDueAt` from their operations. If `claim` rejects, the table may already show jobs as running
 * on this node: other transactions of the same claim, or the failed transaction itself, may have been committed.
 */
export function claiming(running: {
  search(input: Searched[]): Promise<(Found | Problem)[]>;
  take(input: Taken): Promise<ClaimedJob[]>;
  raise(input: { teamId: string }): Promise<number | null>;
  hasSeveralTeams(): Promise<boolean>;
  agenda: TeamAgenda;
  now: Clock;
}): Pick<Store['jobs'], 'claim' | 'nextDueAt'> {
  const { agenda, now } = running;
  const remembered = new Map<string, Remembered>();
  /** The skipped teams, each with the time at which skipping ends, by the monotonic clock. */
  const hung = new Map<string, number>();
  const toRaise = new Set<string>();
  let isRaising = false;
  let served = 0;
  let severalUntilMs = Number.NEGATIVE_INFINITY;

  return {
    async claim(input) {
      const teams: Teams = {
        searched: new Map(),
        rest: await candidates(),
        search: (teamIds) => competitors(input, teamIds),
        hasSeveral: hasSeveralTeams,
      };
      const claimed: ClaimedJob[] = [];
      for (let round = 0; round < MAX_ROUNDS && claimed.length < input.limit; round++) {
        const limit = input.limit - claimed.length;
        const busy = input.busy && [...input.busy, ...claimed.map(({ job }) => job.teamId)];
        const turns = await turnsOf({ limit, ...(busy && { busy }) }, teams);
        const places = new Map<string, number>();
        for (const teamId of turns) places.set(teamId, (places.get(teamId) ?? 0) + 1);
        const taken = await concurrently(places, async ([teamId, most]) => {
          const of = { ...ofTeam(input, teamId), limit: most, bounds: memory(teamId).bounds.current };
          const { nodeId, leaseMs, perTeam } = input;
          const jobs = await unlessBusy(running.take({ ...of, nodeId, leaseMs, perTeam })).catch((error) => {
            if (input.unsure === undefined || !(error instanceof Problem)) throw error;
            input.unsure.add(teamId);
            return undefined;
          });
          if (jobs === undefined) hung.set(teamId, performance.now() + HUNG_MS);
          noteTaken(teamId, most, jobs ?? []);
          return [teamId, jobs ?? []] as const;
        });
        const byTeam = new Map(taken);
        const jobs = turns.flatMap((teamId) => byTeam.get(teamId)?.shift() ?? []);
        for (const { job } of jobs) memory(job.teamId).served = served += 1;
        claimed.push(...jobs);
        if (jobs.length === turns.length) break;
      }
      return claimed;

      function noteTaken(teamId: string, most: number, { length }: readonly ClaimedJob[]): void {
        const team = teams.searched.get(teamId) as Competitor;
        const isOver = length < most;
        team.running += length;
        team.dueAt = isOver ? [] : team.dueAt.slice(length);
        memory(teamId).running = team.running;
      }
    },

    async nextDueAt() {
      let first: number | null = null;
      let searched = 0;
      for (const { teamId, at } of await agenda.all()) {
        if (first !== null && at >= first) break;
        if (searched++ === MAX_FIRST) return at;
        const firstAt = (await search([ofTeam({ limit: 1 }, teamId)])).get(teamId)?.firstAt ?? null;
        first = firstAt === null ? first : Math.min(first ?? firstAt, firstAt);
      }
      return first;
    },
  };

  /** The teams that may have due jobs, in the order in which they are searched. */
  async function candidates(): Promise<string[]> {
    const nowMs = performance.now();
    for (const [teamId, untilMs] of hung) if (untilMs <= nowMs) hung.delete(teamId);
    const due = (await agenda.due())
      .filter(({ teamId }) => !hung.has(teamId))
      .map(({ teamId }) => {
        const known = remembered.get(teamId);
        const isCounted = known !== undefined && nowMs - known.countedMs < COUNTED_MS;
        return { teamId, running: isCounted ? known.running : 0, served: known?.served ?? 0 };
      });
    // The sort is stable, so of equal teams the one that has been due longest comes first.
    due.sort((one, other) => one.running - other.running || one.served - other.served);
    return due.map(({ teamId }) => teamId);
  }

  async function hasSeveralTeams(): Promise<boolean> {
    if (now() < severalUntilMs) return true;
    // This asks all servers. If one of them is not available, there are several.
    const hasSeveral = await running.hasSeveralTeams().catch(() => true);
    if (hasSeveral) severalUntilMs = now() + SEVERAL_MS;
    return hasSeveral;
  }

  /** The teams that could be searched, as they compete for places. */
  async function competitors(input: ClaimInput, teamIds: readonly string[]): Promise<Competitor[]> {
    const found = await search(teamIds.map((teamId) => ofTeam(input, teamId)));
    return Array.from(found, ([teamId, { running, most, dueAt }]) => {
      return { teamId, running, most: most ?? input.perTeam, served: memory(teamId).served, dueAt };
    });
  }

  /**
   * Searches teams, and notes when each of them is next due. A team whose server is not available is left out, and
   * skipped for a while.
   */
  async function search(inputs: Omit<OfTeam, 'bounds'>[]): Promise<Map<string, Found>> {
    const since = agenda.changes;
    const surveys = inputs.map(({ from }) => memory(from).bounds.next(now()));
    const found = await running.search(
      inputs.map((input, n) => ({
        ...input,
        surveyTo: surveys[n] as number,
        bounds: memory(input.from).bounds.current,
      })),
    );
    const searched = new Map<string, Found>();
    for (const [n, one] of found.entries()) {
      const teamId = inputs[n]?.from as string;
      if (one instanceof Problem) {
        hung.set(teamId, performance.now() + HUNG_MS);
        continue;
      }
      searched.set(teamId, one);
      const known = memory(teamId);
      if ((surveys[n] as number) >= 0) known.bounds.surveyed(surveys[n] as number, one);
      Object.assign(known, { running: one.running, countedMs: performance.now() });
      agenda.put({ teamId, at: one.firstAt, since });
      if (isTooEarly(one)) toRaise.add(teamId);
    }
    void raiseAll();
    return searched;
  }

  /** Whether a team's row names a time that is too early, and long enough ago to write the row. */
  function isTooEarly({ storedAt, firstAt, dueAt }: Found): boolean {
    if (storedAt === null || dueAt.length > 0 || (firstAt !== null && firstAt <= now())) return false;
    return storedAt <= now() - RAISE_AFTER_MS || storedAt > now() + LONGEST_WAIT_MS;
  }

  /** Raises the times of teams, one team at a time. No claim waits for it. */
  async function raiseAll(): Promise<void> {
    if (isRaising) return;
    isRaising = true;
    for (const teamId of toRaise) {
      toRaise.delete(teamId);
      // After a failure, the next search of the team tries again.
      await running.raise({ teamId }).catch(() => undefined);
    }
    isRaising = false;
  }

  function memory(teamId: string): Remembered {
    const known = remembered.get(teamId) ?? {
      bounds: new ClaimBounds(),
      served: 0,
      running: 0,
      countedMs: Number.NEGATIVE_INFINITY,
    };
    remembered.delete(teamId);
    remembered.set(teamId, known);
    for (const longestAgo of remembered.keys()) {
      if (remembered.size <= MAX_REMEMBERED) break;
      remembered.delete(longestAgo);
    }
    return known;
  }
}

function ofTeam(
  { limit, except = [] }: Pick<ClaimInput, 'limit' | 'except'>,
  from: string,
): Omit<OfTeam, 'bounds'> {
  const ofThis = except.filter(({ teamId }) => teamId === from);
  return { from, limit, except: ofThis.map(({ workflowId }) => workflowId) };
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

/**
 * Searches teams: one statement each, which are sent together. Returns a Problem for a team whose server is not
 * available, which in a distributed database need not be that of other teams.
 */
export async function search(view: View, inputs: Searched[]): Promise<(Found | Problem)[]> {
  const found = await (view.db as Database).each<Found>(
    SEARCH,
    inputs.map((input) => [...sharedValues(view, input), input.surveyTo]),
  );
  return found.map((one) => {
    if (one.status === 'fulfilled') return one.value[0] as Found;
    const problem = asProblem(one.reason);
    if (problem instanceof Problem) return problem;
    throw problem;
  });
}

/** Starts up to `limit` jobs of a team. */
export async function take(tx: Tx, input: Taken): Promise<ClaimedJob[]> {
  const { from: teamId, nodeId, leaseMs, perTeam } = input;
  const [, rows] = await Promise.all([
    tx.db.run('select pg_advisory_xact_lock(hashtextextended($1, 0))', `flowhook claims ${teamId}`),
    // This is a separate statement, so that it sees everything that was committed before the lock was taken.
    tx.db.all<JobRow & { dueAt: number; place: number }>(
      TAKE,
      ...sharedValues(tx, input),
      perTeam,
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

/** Raises the time at which a team's jobs are due to that of the first waiting job. */
export function raiseJobs(tx: Tx, { teamId }: { teamId: string }): Promise<number | null> {
  const next = async () =>
    (await tx.db.get<{ at: number | null }>(FIRST, teamId, NONE.waitingSince))?.at ?? null;
  return raise(tx, { teamId, item: 'jobs' }, next);
}

function sharedValues({ now }: View, { from, bounds, except, limit }: OfTeam): Value[] {
  return [
    from,
    bounds.waitingSince,
    now,
    now + LONGEST_WAIT_MS,
    [...except],
    bounds.runningSince,
    [...bounds.running],
    limit,
  ];
}
