/**
 * Finds, takes and loads lanes. Each of these runs several transactions, and uses what this node remembers of earlier
 * searches.
 */

import { performance } from 'node:perf_hooks';
import type { Clock } from '../../std/clock.ts';
import { type CallsOf, lease, read, write } from '../operation.ts';
import type { DueLane } from '../operations/lanes.ts';
import { byTeam } from '../rows.ts';
import type { Store } from '../store.ts';
import type { LaneName } from '../transaction.ts';
import * as operations from './lanes.ts';
import { type FoundLane, type KnownLane, keyOf, lasts, type NextSearch } from './lanes.ts';

/** The database operations that the functions below combine. */
export const LANE_OPERATIONS = {
  all: read(operations.lanes, { prepares: true }),
  one: read(operations.lane, { prepares: true }),
  isLarge: read(operations.isLarge),
  take: write(operations.take, { prepares: true }),
  keep: lease(operations.keep, { prepares: true }),
  release: write(operations.release),
};
export const LOAD = read(operations.load, { prepares: true });

type Calls = CallsOf<{ deliveries: { load: typeof LOAD }; lanes: typeof LANE_OPERATIONS }> & {
  now: Clock;
  isDistributed: boolean;
};

type Made = 'lanes' | 'lane' | 'keepLanes' | 'releaseLanes' | 'load';

export function outbox({ deliveries, lanes, now, isDistributed }: Calls): Pick<Store['deliveries'], Made> {
  const bounds = new LaneBounds();
  /** Runs a transaction for all lanes, or one for each team. */
  const inParts = <Lane extends LaneName, Result>(
    named: readonly Lane[],
    change: (lanes: readonly Lane[]) => Promise<Result>,
  ) => eachPart(isDistributed, named, ({ teamId }) => teamId, change);

  async function find({ nodeId }: { nodeId: string }): Promise<FoundLane[]> {
    const search = bounds.next(now());
    const startMs = performance.now();
    const found = await lanes.all({ nodeId, ...search });
    if (search.known === undefined) {
      await bounds.rest(performance.now() - startMs, () => lanes.isLarge());
    }
    return found;
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
    async lanes({ limit, ...holder }) {
      const found = await find(holder);
      const at = { now: now(), leaseMs: holder.leaseMs };
      const ofOurs = found.filter(({ nodeId }) => nodeId === holder.nodeId);
      const mine = ofOurs.filter((one) => lasts(one, at));
      const fading = ofOurs.filter((one) => !lasts(one, at));
      const free = some(
        found.filter(({ nodeId }) => nodeId !== holder.nodeId),
        limit,
      );
      return held(holder, { mine, wanted: [...fading, ...free] });
    },
    async lane(input) {
      bounds.note(input);
      const found = await lanes.one({ ...input, seen: bounds.seen(input) });
      if (found === undefined) return undefined;
      const isSafe = found.nodeId === input.nodeId && lasts(found, { now: now(), leaseMs: input.leaseMs });
      const [due] = await held(input, isSafe ? { mine: [found], wanted: [] } : { mine: [], wanted: [found] });
      return due;
    },
    async keepLanes({ lanes: named, ...holder }) {
      const kept = await inParts(named, (part) => lanes.keep({ ...holder, lanes: part }));
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

/** Maximum number of lanes whose bounds are remembered. All other lanes are searched from the start. */
const MAX_LANES = 10_000;
/**
 * Maximum number of lanes in a search of known lanes. The most recently used lanes are searched; all others wait for
 * the next full search.
 */
const MAX_KNOWN = 1_000;
/** Interval at which all bounds are reset, because a restored database may contain an earlier state. */
const AFRESH_EVERY_MS = 30_000;
/**
 * A full search that takes longer than this is slow. After a slow search, only known lanes are searched for 20 times
 * the duration of that search.
 */
const SLOW_MS = 25;
const REST = 20;

/**
 * Remembers where to start searching in each lane. During a long transaction, the index of waiting deliveries keeps a
 * dead entry for every delivery that ever waited. A search that starts after the dead entries does not read them again.
 *
 * No new delivery can appear before the bound: new deliveries are written with their event, and the events of a team
 * become visible in the order of their sequence numbers. Retries and replays are few, and are always searched from the
 * start.
 */
export class LaneBounds {
  readonly #lanes = new Map<string, KnownLane>();
  readonly #elapsed: Clock;
  #afreshAtMs = Number.NEGATIVE_INFINITY;
  #lastMs = 0;
  #restUntilMs = 0;

  /** @param elapsed returns milliseconds of a monotonic clock */
  constructor(elapsed: Clock = () => performance.now()) {
    this.#elapsed = elapsed;
  }

  seen(lane: LaneName): number {
    return this.#lanes.get(keyOf(lane))?.seen ?? 0;
  }

  /** Remembers a lane. If too many lanes are remembered, the least recently used lane is forgotten. */
  note({ teamId, webhookId }: LaneName, seen = 0): void {
    const key = keyOf({ teamId, webhookId });
    const known = { teamId, webhookId, seen: Math.max(seen, this.#lanes.get(key)?.seen ?? 0) };
    this.#lanes.delete(key);
    this.#lanes.set(key, known);
    if (this.#lanes.size <= MAX_LANES) return;
    for (const first of this.#lanes.keys()) {
      this.#lanes.delete(first);
      return;
    }
  }

  next(nowMs: number): NextSearch {
    const elapsedMs = this.#elapsed();
    const afresh = elapsedMs - this.#afreshAtMs >= AFRESH_EVERY_MS || nowMs < this.#lastMs;
    this.#lastMs = nowMs;
    if (afresh) {
      this.#afreshAtMs = elapsedMs;
      for (const [key, lane] of this.#lanes) this.#lanes.set(key, { ...lane, seen: 0 });
      this.#restUntilMs = 0;
    }
    const isResting = elapsedMs < this.#restUntilMs;
    return { afresh, known: isResting ? [...this.#lanes.values()].slice(-MAX_KNOWN) : undefined };
  }

  /**
   * Postpones the next full search if this search was slow, unless the index is too small for dead entries to be the
   * reason.
   */
  async rest(tookMs: number, isLarge: () => Promise<boolean>): Promise<void> {
    if (tookMs < SLOW_MS || !(await isLarge())) return;
    this.#restUntilMs = this.#elapsed() + REST * tookMs;
  }
}
