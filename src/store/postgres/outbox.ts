/** Finding, taking and loading lanes: of several transactions, with what this node knows of them. */
import { performance } from 'node:perf_hooks';
import type { CallsOf } from '../operation.ts';
import type { Store } from '../store.ts';
import type { DueLane } from '../webhook-operations.ts';
import { LaneBounds } from './lane-bounds.ts';
import * as leases from './lane-leases.ts';
import type { FoundLane } from './lanes.ts';
import type { POSTGRES_OPERATIONS } from './operations.ts';

type Calls = Pick<CallsOf<typeof POSTGRES_OPERATIONS>, 'deliveries' | 'lanes'> & {
  now: Store['now'];
};

type Made = 'lanes' | 'lane' | 'keepLanes' | 'releaseLanes' | 'load';

export function outbox({ deliveries, lanes, now }: Calls): Pick<Store['deliveries'], Made> {
  const bounds = new LaneBounds();

  async function find({ nodeId }: { nodeId: string }): Promise<FoundLane[]> {
    const look = bounds.next(now());
    const askedMs = performance.now();
    const found = await lanes.all({ nodeId, ...look });
    if (look.known === undefined) {
      await bounds.rest(performance.now() - askedMs, () => lanes.isLarge());
    }
    return found;
  }

  /** Takes the wanted lanes; those that another node has taken since they were found are left out. */
  async function held(
    { nodeId, leaseMs }: { nodeId: string; leaseMs: number },
    { mine, wanted }: { mine: readonly FoundLane[]; wanted: readonly FoundLane[] },
  ): Promise<DueLane[]> {
    if (wanted.length === 0) return mine.map(toDue);
    const taken = await lanes.take({ nodeId, leaseMs, lanes: wanted });
    const epochs = new Map(taken.map((one) => [leases.keyOf(one), one.epoch]));
    const ours = wanted.flatMap((one) => {
      const epoch = epochs.get(leases.keyOf(one));
      return epoch === undefined ? [] : [{ ...one, epoch }];
    });
    return [...mine, ...ours].map(toDue);
  }

  return {
    async lanes({ limit, ...holder }) {
      const found = await find(holder);
      const at = { now: now(), leaseMs: holder.leaseMs };
      const ofOurs = found.filter(({ nodeId }) => nodeId === holder.nodeId);
      const mine = ofOurs.filter((one) => leases.lasts(one, at));
      const fading = ofOurs.filter((one) => !leases.lasts(one, at));
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
      const isSafe =
        found.nodeId === input.nodeId && leases.lasts(found, { now: now(), leaseMs: input.leaseMs });
      const [due] = await held(input, isSafe ? { mine: [found], wanted: [] } : { mine: [], wanted: [found] });
      return due;
    },
    keepLanes: lanes.keep,
    releaseLanes: lanes.release,
    load: async (input) => {
      const { due, seen } = await deliveries.load({ ...input, seen: bounds.seen(input) });
      bounds.note(input, seen);
      return due;
    },
  };
}

/** At most `limit` of them from a random start, so that nodes that look at the same moment take different lanes. */
function some<Item>(items: readonly Item[], limit: number): readonly Item[] {
  if (items.length <= limit) return items;
  const first = Math.floor(Math.random() * items.length);
  return [...items.slice(first), ...items.slice(0, first)].slice(0, limit);
}

function toDue({ nodeId: _, leaseUntil: __, ...due }: FoundLane): DueLane {
  return due;
}
