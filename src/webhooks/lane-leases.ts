/**
 * Which lanes are this node's: of several nodes on one database exactly one sends to a webhook at a time. A lane is
 * taken for 15 s when the store names it, kept by one statement for all of them every 5 s, and given back when nothing
 * has been sent for a while. What has not been renewed for 10 s sends nothing more, so that nobody else can take over
 * while it still does. On a database that belongs to one process all lanes are its own, and none is ever lost.
 */
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../std/clock.ts';
import { Wake } from '../std/wake.ts';
import type { DeliveryOperations, HeldLane } from '../store/webhook-operations.ts';
import type { Lane } from './lane.ts';

const LEASE_MS = 15_000;
/**
 * What of a lease lies between two renewals, and after what share without one it may soon be somebody else's: no more
 * than the store leaves of one at least when it names a lane.
 */
const KEEP_SHARE = 1 / 3;
const TRUST_SHARE = 2 / 3;
/** A lane that has had nothing to do for so long is given back. */
const IDLE_MS = 10_000;
/** DeliveryEngine that one look takes at most: others find the rest, and so load spreads. */
const TAKE_AT_ONCE = 500;

export class LaneLeases {
  readonly #deliveries: Pick<DeliveryOperations, 'keepLanes' | 'releaseLanes'>;
  readonly #nodeId: string;
  readonly #leaseMs: number;
  readonly #log: Logger;
  readonly #now: Clock;
  readonly #elapsed: Clock;
  readonly #lanes: () => Iterable<Lane>;
  readonly #onKept: (lane: Lane) => void;
  readonly #onLost: (lane: Lane) => void;
  readonly #wake: Wake;

  /**
   * @param input.leaseMs how long a lane is taken for; 15 s unless told
   * @param input.now the store's clock, by which lanes rest
   * @param input.elapsed milliseconds by a clock that is never set back
   * @param input.lanes those that this node knows, held or not
   * @param input.onKept called when one may send again that was silent for too long
   * @param input.onLost called for one that another node has taken: nothing of it must be sent any more
   */
  constructor(input: {
    deliveries: Pick<DeliveryOperations, 'keepLanes' | 'releaseLanes'>;
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
    this.#wake = new Wake({
      everyMs: this.#leaseMs * KEEP_SHARE,
      random: input.random,
      look: () => this.keep(),
    });
  }

  /** What the store is told about whoever asks for lanes. */
  get holder(): { nodeId: string; leaseMs: number; limit: number } {
    return { nodeId: this.#nodeId, leaseMs: this.#leaseMs, limit: TAKE_AT_ONCE };
  }

  /** Whether it may send now. */
  trusts({ leasedAtMs }: Lane): boolean {
    return leasedAtMs !== undefined && this.#elapsed() - leasedAtMs < this.#leaseMs * TRUST_SHARE;
  }

  start(): void {
    this.#wake.start();
  }

  /** Keeps nothing any more; what is in flight may still be settled. */
  async stop(): Promise<void> {
    await this.#wake.stop();
  }

  /** Gives all of them back. Never rejects: else their leases run out. */
  async releaseAll(): Promise<void> {
    await this.#release([...this.#lanes()].filter(isHeld));
  }

  /** Renews the leases once. Never rejects. */
  async keep(): Promise<void> {
    const held = [...this.#lanes()].filter(isHeld);
    const askedMs = this.#elapsed();
    const nowMs = this.#now();
    const idle = held.filter(
      (lane) => lane.isEmpty && lane.restsUntil(nowMs) <= nowMs && askedMs - lane.usedAtMs > IDLE_MS,
    );
    await this.#release(idle);
    const kept = held.filter((lane) => !idle.includes(lane));
    if (kept.length === 0) return;
    let told: { lost: HeldLane[]; late: HeldLane[] };
    try {
      const { nodeId, leaseMs } = this.holder;
      told = await this.#deliveries.keepLanes({ nodeId, leaseMs, lanes: kept.map(nameOf) });
    } catch (error) {
      this.#log.warn({ err: error, lanes: kept.length }, 'delivery.lanes_not_kept');
      return;
    }
    const lost = new Set(told.lost.map(keyOf));
    const late = new Set(told.late.map(keyOf));
    for (const lane of kept) {
      // Nobody can take it while it is locked, and the trust in it runs out by itself.
      if (late.has(keyOf(lane.due))) continue;
      if (lost.has(keyOf(lane.due))) {
        this.#log.warn({ webhookId: lane.due.webhookId }, 'delivery.lane_lost');
        lane.leasedAtMs = undefined;
        lane.goneAtMs = askedMs;
        this.#onLost(lane);
      } else if (lane.leasedAtMs !== undefined) {
        const wasSilent = !this.trusts(lane);
        lane.leasedAtMs = Math.max(lane.leasedAtMs, askedMs);
        if (wasSilent) this.#onKept(lane);
      }
    }
  }

  async #release(lanes: readonly Lane[]): Promise<void> {
    if (lanes.length === 0) return;
    for (const lane of lanes) {
      lane.leasedAtMs = undefined;
      // Until it is: whoever is told meanwhile that it is still ours must not believe it.
      lane.goneAtMs = Number.POSITIVE_INFINITY;
    }
    try {
      await this.#deliveries.releaseLanes({ nodeId: this.#nodeId, lanes: lanes.map(nameOf) });
    } catch (error) {
      this.#log.warn({ err: error, lanes: lanes.length }, 'delivery.lanes_not_released');
    } finally {
      for (const lane of lanes) lane.goneAtMs = this.#elapsed();
    }
  }
}

function isHeld(lane: Lane): boolean {
  return lane.leasedAtMs !== undefined;
}

function keyOf({ webhookId, epoch }: HeldLane): string {
  return `${webhookId} ${epoch}`;
}

function nameOf({ due: { teamId, webhookId, epoch } }: Lane): HeldLane {
  return { teamId, webhookId, epoch };
}
