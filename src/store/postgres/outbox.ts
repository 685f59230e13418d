/**
 * Finds, takes and loads lanes. Each of these runs several transactions, and uses what this node remembers of earlier
 * searches.
 */

import { performance } from 'node:perf_hooks';
import { Problem } from '../../model/error.ts';
import type { Clock } from '../../std/clock.ts';
import { type CallsOf, lease, read, write } from '../operation.ts';
import type { DueLane } from '../operations/lanes.ts';
import { OPERATIONS } from '../operations/table.ts';
import { byTeam } from '../rows.ts';
import type { Store } from '../store.ts';
import type { LaneName } from '../transaction.ts';
import * as operations from './lanes.ts';
import { type FoundLane, keyOf, lasts, type NextSearch } from './lanes.ts';
import type { TeamAgenda } from './team-agenda.ts';

/** The database operations that the functions below combine. */
export const LANE_OPERATIONS = {
  ...OPERATIONS.lanes,
  ofTeam: read(operations.lanes, { prepares: true }),
  one: read(operations.lane, { prepares: true }),
  isLarge: read(operations.isLarge),
  take: write(operations.take, { prepares: true }),
  keep: lease(operations.keep, { prepares: true }),
  release: write(operations.release),
};
export const LOAD = read(operations.load, { prepares: true });

type Calls = CallsOf<{
  deliveries: { load: typeof LOAD };
  lanes: typeof LANE_OPERATIONS;
}> & {
  now: Clock;
  isDistributed: boolean;
  /** The teams whose lanes may be due. */
  agenda: TeamAgenda;
};

type Made = 'lanes' | 'lane' | 'keepLanes' | 'releaseLanes' | 'load';

/**
 * Maximum number of teams per search, and of teams that are searched at the same time. The team that was searched last
 * comes last in the next search.
 */
const MAX_SEARCHED = 100;
const CONCURRENT = 4;
/** When a team whose server is not available is searched again. */
const AGAIN_MS = 2_000;

export function outbox({
  deliveries,
  lanes,
  now,
  isDistributed,
  agenda,
}: Calls): Pick<Store['deliveries'], Made> {
  const bounds = new LaneBounds();
  /** Runs a transaction for all lanes, or one for each team. */
  const inParts = <Lane extends LaneName, Result>(
    named: readonly Lane[],
    change: (lanes: readonly Lane[]) => Promise<Result>,
  ) => eachPart(isDistributed, named, ({ teamId }) => teamId, change);

  async function find(nodeId: string, asked: Set<string>): Promise<FoundLane[]> {
    const found: FoundLane[] = [];
    const teams = (await agenda.due()).slice(0, MAX_SEARCHED).values();
    const search = async () => {
      for (const { teamId } of teams) {
        const since = agenda.changes;
        try {
          found.push(...(await findOfTeam(nodeId, teamId)));
          asked.add(teamId);
        } catch (error) {
          // In a distributed database, the servers of other teams may be available.
          if (!isDistributed || !(error instanceof Problem)) throw error;
          agenda.put({ teamId, at: now() + AGAIN_MS, since });
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, search));
    return found;
  }

  async function findOfTeam(nodeId: string, teamId: string): Promise<FoundLane[]> {
    const since = agenda.changes;
    const search = bounds.next(teamId, now());
    const startMs = performance.now();
    const found = await lanes.ofTeam({ nodeId, teamId, ...search });
    if (search.known === undefined) {
      await bounds.rest(teamId, performance.now() - startMs, () => lanes.isLarge());
    }
    // A search of known lanes may have missed others.
    const isEmpty = found.length === 0 && search.known === undefined;
    const at = isEmpty ? await nextSearch(teamId) : now();
    agenda.put({ teamId, at: at === null ? null : Math.max(at, now()), since });
    return found;
  }

  async function nextSearch(teamId: string): Promise<number | null> {
    const { at, isStale } = await lanes.afterSearch({ teamId });
    return isStale ? lanes.raise({ teamId }) : at;
  }

  /** Takes the wanted lanes. Lanes that another node has taken since the search are left out. */
  async function held(
    { nodeId, leaseMs }: { nodeId: string; leaseMs: number },
    { mine, wanted }: { mine: readonly FoundLane[]; wanted: readonly FoundLane[] },
  ): Promise<DueLane[]> {
    if (wanted.length === 0) return mine.map(toDue);
    const taken = await inParts(wanted, (part) => lanes.take({ nodeId, leaseMs, lanes: part }));
    const epochs = new Map(taken.flat().map((one) => [keyOf(one), one.epoch]));
    const ours = wanted.flatMap((one) => {
      const epoch = epochs.get(keyOf(one));
      return epoch === undefined ? [] : [{ ...one, epoch }];
    });
    return [...mine, ...ours].map(toDue);
  }

  return {
    async lanes({ limit, asked = new Set(), mayTake = () => true, ...holder }) {
      const found = await find(holder.nodeId, asked);
      const at = { now: now(), leaseMs: holder.leaseMs };
      const ofOurs = found.filter(({ nodeId }) => nodeId === holder.nodeId);
      const mine = ofOurs.filter((one) => lasts(one, at));
      const fading = ofOurs.filter((one) => !lasts(one, at));
      const free = some(
        found.filter((one) => one.nodeId !== holder.nodeId && mayTake(one)),
        limit,
      );
      return held(holder, { mine, wanted: [...fading, ...free] });
    },
    async lane({ mayTake = () => true, ...input }) {
      bounds.note(input);
      const found = await lanes.one({ ...input, seen: bounds.seen(input) });
      if (found === undefined || (found.nodeId !== input.nodeId && !mayTake(found))) return undefined;
      const isSafe = found.nodeId === input.nodeId && lasts(found, { now: now(), leaseMs: input.leaseMs });
      const [due] = await held(input, isSafe ? { mine: [found], wanted: [] } : { mine: [], wanted: [found] });
      return due;
    },
    async keepLanes({ lanes: named, ...holder }) {
      const kept = await inParts(named, (part) =>
        lanes.keep({ ...holder, lanes: part }).catch((error) => {
          if (!isDistributed || !(error instanceof Problem)) throw error;
          return { lost: [], late: [...part] };
        }),
      );
      return { lost: kept.flatMap(({ lost }) => lost), late: kept.flatMap(({ late }) => late) };
    },
    async releaseLanes({ nodeId, lanes: named }) {
      await inParts(named, (part) => lanes.release({ nodeId, lanes: part }));
    },
    load: async (input) => {
      const { due, seen } = await deliveries.load({ ...input, seen: bounds.seen(input) });
      bounds.note(input, seen);
      return due;
    },
  };
}

/**
 * Changes rows of several teams in one transaction. In a distributed database, each team gets a transaction of its own,
 * so that no transaction needs several nodes. If one fails, the others are committed nevertheless.
 */
export async function eachPart<Row, Result>(
  isDistributed: boolean,
  rows: readonly Row[],
  teamOf: (row: Row) => string,
  change: (rows: readonly Row[]) => Promise<Result>,
): Promise<Result[]> {
  const parts = isDistributed ? byTeam(rows, teamOf).map(([, ofTeam]) => ofTeam) : [rows];
  const changed = await Promise.allSettled(parts.filter((part) => part.length > 0).map(change));
  return changed.map((part) => {
    if (part.status === 'rejected') throw part.reason;
    return part.value;
  });
}

/**
 * Returns at most `limit` items from a random start, so that nodes that search at the same moment take different lanes.
 */
function some<Item>(items: readonly Item[], limit: number): readonly Item[] {
  if (items.length <= limit) return items;
  const first = Math.floor(Math.random() * items.length);
  return [...items.slice(first), ...items.slice(0, first)].slice(0, limit);
}

function toDue({ nodeId: _, leaseUntil: __, ...due }: FoundLane): DueLane {
  return due;
}

/** Maximum number of teams and lanes whose bounds are remembered. All others are searched from the start. */
const MAX_REMEMBERED = 10_000;
/**
 * Maximum number of lanes in a search of known lanes. The most recently used lanes are searched; all others wait for
 * the next full search.
 */
const MAX_KNOWN = 1_000;
/** Interval at which the bounds of a team are reset, because a restored database may contain an earlier state. */
const AFRESH_EVERY_MS = 30_000;
/**
 * A full search that takes longer than this is slow. After a slow search of a team, only its known lanes are searched
 * for 20 times the duration of that search.
 */
const SLOW_MS = 25;
const REST = 20;

interface TeamBounds {
  /** For each webhook a sequence number: for events up to it, no new delivery is waiting. */
  seen: Map<string, number>;
  afreshAtMs: number;
  lastMs: number;
  restUntilMs: number;
}

/**
 * Remembers where to start searching in each lane. During a long transaction, the index of waiting deliveries keeps a
 * dead entry for every delivery that ever waited. A search that starts after the dead entries does not read them again.
 *
 * No new delivery can appear before the bound: new deliveries are written with their event, and the events of a team
 * become visible in the order of their sequence numbers. Retries and replays are few, and are always searched from the
 * start.
 */
export class LaneBounds {
  /** The least recently used team comes first, and so does its least recently used lane. */
  readonly #teams = new Map<string, TeamBounds>();
  readonly #elapsed: Clock;
  #lanes = 0;

  /** @param elapsed returns milliseconds of a monotonic clock */
  constructor(elapsed: Clock = () => performance.now()) {
    this.#elapsed = elapsed;
  }

  seen({ teamId, webhookId }: LaneName): number {
    return this.#teams.get(teamId)?.seen.get(webhookId) ?? 0;
  }

  /** Remembers a lane. If too many lanes are remembered, the least recently used lane is forgotten. */
  note({ teamId, webhookId }: LaneName, seen = 0): void {
    const lanes = this.#use(teamId).seen;
    const most = Math.max(seen, lanes.get(webhookId) ?? 0);
    if (!lanes.delete(webhookId)) this.#lanes += 1;
    lanes.set(webhookId, most);
    this.#forget();
  }

  next(teamId: string, nowMs: number): NextSearch {
    const elapsedMs = this.#elapsed();
    const team = this.#use(teamId);
    const afresh = elapsedMs - team.afreshAtMs >= AFRESH_EVERY_MS || nowMs < team.lastMs;
    team.lastMs = nowMs;
    if (afresh) {
      team.afreshAtMs = elapsedMs;
      for (const webhookId of team.seen.keys()) team.seen.set(webhookId, 0);
      team.restUntilMs = 0;
    }
    const isResting = elapsedMs < team.restUntilMs;
    return { afresh, known: isResting ? new Map([...team.seen].slice(-MAX_KNOWN)) : undefined };
  }

  /**
   * Postpones the next full search of a team if this search was slow, unless the index is too small for dead entries to
   * be the reason.
   */
  async rest(teamId: string, tookMs: number, isLarge: () => Promise<boolean>): Promise<void> {
    if (tookMs < SLOW_MS || !(await isLarge())) return;
    this.#use(teamId).restUntilMs = this.#elapsed() + REST * tookMs;
  }

  #use(teamId: string): TeamBounds {
    const team = this.#teams.get(teamId) ?? {
      seen: new Map(),
      afreshAtMs: Number.NEGATIVE_INFINITY,
      lastMs: 0,
      restUntilMs: 0,
    };
    this.#teams.delete(teamId);
    this.#teams.set(teamId, team);
    this.#forget();
    return team;
  }

  #forget(): void {
    for (const [teamId, { seen }] of this.#teams) {
      for (const webhookId of seen.keys()) {
        if (this.#lanes + this.#teams.size <= MAX_REMEMBERED) return;
        seen.delete(webhookId);
        this.#lanes -= 1;
      }
      if (this.#lanes + this.#teams.size <= MAX_REMEMBERED) return;
      this.#teams.delete(teamId);
    }
  }
}
