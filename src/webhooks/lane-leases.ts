/**
 * The leases of this node's lanes. They ensure that of several nodes on one database, exactly one sends to a webhook at
 * a time. The store leases a lane for 15 s when it returns the lane. The node renews its leases every 5 s, with one
 * statement for all lanes, and releases lanes that are idle. A lane whose lease was not renewed for 10 s stops sending,
 * so that another node can safely take over. On SQLite the database belongs to one process, and leases are never lost.
 */
import type { Logger } from '../observe/log.ts';
import { Poller } from '../std/chore.ts';
import type { Clock } from '../std/clock.ts';
import type { HeldLane } from '../store/operations/lanes.ts';
import type { Store } from '../store/store.ts';
import type { Lane } from './lane.ts';

const LEASE_MS = 15_000;
/**
 * Shares of the lease duration: the interval between renewals, and the age at which a lease is no longer trusted. This
 * age must not exceed the minimum time left on a lease that the store returns.
 */
const KEEP_SHARE = 1 / 3;
const TRUST_SHARE = 2 / 3;
/** A lane that was idle for this long is released. */
const IDLE_MS = 10_000;
/** Maximum number of lanes that this node leases at a time. Other nodes lease further lanes, which spreads the load. */
const MAX_TAKEN = 500;

export class LaneLeases {
  readonly #deliveries: Pick<Store['deliveries'], 'keepLanes' | 'releaseLanes'>;
  readonly #nodeId: string;
  readonly #leaseMs: number;
  readonly #log: Logger;
  readonly #now: Clock;
  readonly #elapsed: Clock;
  readonly #lanes: () => Iterable<Lane>;
  readonly #onKept: (lane: Lane) => void;
  readonly #onLost: (lane: Lane) => void;
  readonly #poller: Poller;

  /**
   * @param input.leaseMs duration of a lease; default: 15 s
   * @param input.now the store's clock, which determines how long lanes rest
   * @param input.elapsed a monotonic clock, in milliseconds
   * @param input.lanes the lanes that this node knows, leased or not
   * @param input.onKept called when a lane whose lease was renewed late may send again
   * @param input.onLost called when another node has taken a lane: nothing of it may be sent anymore
   */
  constructor(input: {
    deliveries: Pick<Store['deliveries'], 'keepLanes' | 'releaseLanes'>;
    nodeId: string;
    leaseMs: number | undefined;
    log: Logger;
    random: () => number;
    now: Clock;
    elapsed: Clock;
    lanes: () => Iterable<Lane>;
    onKept: (lane: Lane) => void;
    onLost: (lane: Lane) => void;
  }) {
    this.#deliveries = input.deliveries;
    this.#nodeId = input.nodeId;
    this.#leaseMs = input.leaseMs ?? LEASE_MS;
    this.#log = input.log;
    this.#now = input.now;
    this.#elapsed = input.elapsed;
    this.#lanes = input.lanes;
    this.#onKept = input.onKept;
    this.#onLost = input.onLost;
    this.#poller = new Poller({
      everyMs: this.#leaseMs * KEEP_SHARE,
      random: input.random,
      look: () => this.keep(),
    });
  }

  /** The parameters with which the store leases lanes to this node. */
  get holder(): { nodeId: string; leaseMs: number; limit: number } {
    return { nodeId: this.#nodeId, leaseMs: this.#leaseMs, limit: MAX_TAKEN };
  }

  /** Whether a lane may send, because its lease was renewed recently enough. */
  trusts(lane: Lane): boolean {
    return lane.leaseAgeMs(this.#elapsed()) < this.#leaseMs * TRUST_SHARE;
  }

  start(): void {
    this.#poller.start();
  }

  /** Stops renewing. Requests in flight may still be settled. */
  async stop(): Promise<void> {
    await this.#poller.stop();
  }

  /** Releases all lanes. Never rejects: if the release fails, the leases expire. */
  async releaseAll(): Promise<void> {
    await this.#release([...this.#lanes()].filter((lane) => lane.isHeld));
  }

  /** Releases idle lanes and renews the leases of the others. Never rejects. */
  async keep(): Promise<void> {
    const held = [...this.#lanes()].filter((lane) => lane.isHeld);
    const askedMs = this.#elapsed();
    const nowMs = this.#now();
    const idle = held.filter(
      (lane) => lane.isEmpty && lane.restsUntil(nowMs) <= nowMs && lane.idleMs(askedMs) > IDLE_MS,
    );
    await this.#release(idle);
    const kept = held.filter((lane) => !idle.includes(lane));
    if (kept.length === 0) return;
    let result: { lost: HeldLane[]; late: HeldLane[] };
    try {
      const { nodeId, leaseMs } = this.holder;
      result = await this.#deliveries.keepLanes({ nodeId, leaseMs, lanes: kept.map(nameOf) });
    } catch (error) {
      this.#log.warn({ err: error, lanes: kept.length }, 'delivery.lanes_not_kept');
      return;
    }
    const lost = new Set(result.lost.map(keyOf));
    const late = new Set(result.late.map(keyOf));
    for (const lane of kept) {
      // The row of the lane is locked, so no other node can take the lane either. Without a renewal, the lane stops
      // sending by itself.
      if (late.has(keyOf(lane.due))) continue;
      if (lost.has(keyOf(lane.due))) {
        this.#log.warn({ webhookId: lane.due.webhookId }, 'delivery.lane_lost');
        lane.lost(askedMs);
        this.#onLost(lane);
      } else if (lane.isHeld) {
        const wasSilent = !this.trusts(lane);
        lane.leaseRenewed(askedMs);
        if (wasSilent) this.#onKept(lane);
      }
    }
  }

  async #release(lanes: readonly Lane[]): Promise<void> {
    if (lanes.length === 0) return;
    // Until the release has finished, results of reads that show the lanes as leased by this node are stale.
    for (const lane of lanes) lane.lost(Number.POSITIVE_INFINITY);
    try {
      await this.#deliveries.releaseLanes({ nodeId: this.#nodeId, lanes: lanes.map(nameOf) });
    } catch (error) {
      this.#log.warn({ err: error, lanes: lanes.length }, 'delivery.lanes_not_released');
    } finally {
      for (const lane of lanes) lane.lost(this.#elapsed());
    }
  }
}

function keyOf({ webhookId, epoch }: HeldLane): string {
  return `${webhookId} ${epoch}`;
}

function nameOf({ due: { teamId, webhookId, epoch } }: Lane): HeldLane {
  return { teamId, webhookId, epoch };
}
