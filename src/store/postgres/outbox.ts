/** Assembles the operations of events, webhooks and deliveries, including those of several transactions. */
import { performance } from 'node:perf_hooks';
import { inRounds } from '../rounds.ts';
import type { Store } from '../store.ts';
import type { DueLane } from '../webhook-operations.ts';
import { cancelRemoved } from './cancel-removed.ts';
import * as deliveries from './deliveries.ts';
import { history, ofEvent } from './event-history.ts';
import * as events from './events.ts';
import { FORGET_START, forget } from './forget-webhooks.ts';
import { LaneBounds } from './lane-bounds.ts';
import * as leases from './lane-leases.ts';
import { type FoundLane, firstDueAt, isLarge, lane, lanes, load } from './lanes.ts';
import { EXPIRE_START, expire, PRUNE_START, prune } from './outbox-retention.ts';
import { REPLAY_START, stepReplays } from './replay-steps.ts';
import { getReplay, replay, replayable, replayed, startReplay } from './replays.ts';
import { settle } from './settle.ts';
import type { Tx, View } from './transaction.ts';
import * as changes from './webhook-changes.ts';
import * as webhooks from './webhooks.ts';

interface Running {
  read<Input, Result>(
    operation: (view: View, input: Input) => Promise<Result>,
  ): (input: Input) => Promise<Result>;
  write<Input, Result>(
    operation: (tx: Tx, input: Input) => Promise<Result>,
  ): (input: Input) => Promise<Result>;
  /** As `write`, on the connections that are reserved for leases. */
  lease: Running['write'];
  now: Store['now'];
}

/** Makes the three groups of operations. */
export function outbox({
  read,
  write,
  lease,
  now,
}: Running): Pick<Store, 'events' | 'webhooks' | 'deliveries'> {
  const bounds = new LaneBounds();
  const findAll = read(lanes);
  const findOne = read(lane);
  const loadSome = read(load);
  const isSlowForSize = read(isLarge);
  const take = write(leases.take);
  const removeAll = write(webhooks.unsubscribe);
  const settleAll = write(settle);
  const cancelSome = write(cancelRemoved);
  let isCanceling = false;
  let expiredUpTo = EXPIRE_START;

  async function find({ nodeId }: { nodeId: string }): Promise<FoundLane[]> {
    const look = bounds.next(now());
    const askedMs = performance.now();
    const found = await findAll({ nodeId, ...look });
    if (look.known === undefined) {
      await bounds.rest(performance.now() - askedMs, () => isSlowForSize(undefined));
    }
    return found;
  }

  /** Takes the wanted lanes; those that another node has taken since they were found are left out. */
  async function held(
    { nodeId, leaseMs }: { nodeId: string; leaseMs: number },
    { mine, wanted }: { mine: readonly FoundLane[]; wanted: readonly FoundLane[] },
  ): Promise<DueLane[]> {
    if (wanted.length === 0) return mine.map(toDue);
    const taken = await take({ nodeId, leaseMs, lanes: wanted });
    const epochs = new Map(taken.map((one) => [leases.keyOf(one), one.epoch]));
    const ours = wanted.flatMap((one) => {
      const epoch = epochs.get(leases.keyOf(one));
      return epoch === undefined ? [] : [{ ...one, epoch }];
    });
    return [...mine, ...ours].map(toDue);
  }

  /** Runs in the background. What it does not get to is found by the chore that expires old deliveries. */
  async function cancelTheRest(): Promise<void> {
    if (isCanceling) return;
    isCanceling = true;
    try {
      while ((await cancelSome(undefined)).more);
    } catch {
      // Deliveries of removed webhooks are never loaded, whether they are canceled now or later.
    } finally {
      isCanceling = false;
    }
  }

  return {
    events: {
      list: read(events.list),
      get: read(events.get),
      history: read(history),
      latest: read(events.latest),
      newest: read(events.newest),
    },
    webhooks: {
      subscribe: write(webhooks.subscribe),
      list: read(webhooks.list),
      get: read(webhooks.get),
      byUrl: read(webhooks.byUrl),
      unsubscribe: async (input) => {
        const { removed, more } = await removeAll(input);
        if (more) void cancelTheRest();
        return removed;
      },
      secret: read(webhooks.secret),
      headers: read(webhooks.headers),
      rotate: write(changes.rotate),
      change: write(changes.change),
      pause: write(changes.pause),
      resume: write(webhooks.resume),
      test: write(changes.test),
      forget: inRounds(FORGET_START, write(forget)),
    },
    deliveries: {
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
        const found = await findOne({ ...input, seen: bounds.seen(input) });
        if (found === undefined) return undefined;
        const isSafe =
          found.nodeId === input.nodeId && leases.lasts(found, { now: now(), leaseMs: input.leaseMs });
        const [due] = await held(
          input,
          isSafe ? { mine: [found], wanted: [] } : { mine: [], wanted: [found] },
        );
        return due;
      },
      keepLanes: lease(leases.keep),
      releaseLanes: write(leases.release),
      load: async (input) => {
        const { due, seen } = await loadSome({ ...input, seen: bounds.seen(input) });
        bounds.note(input, seen);
        return due;
      },
      settle: async (input) => {
        if ((await settleAll(input)).more) void cancelTheRest();
      },
      get: read(deliveries.get),
      list: read(deliveries.list),
      firstDueAt: read(firstDueAt),
      ofEvent: read(ofEvent),
      replay: write(replay),
      startReplay: write(startReplay),
      getReplay: read(getReplay),
      replayable: read(replayable),
      replayed: read(replayed),
      stepReplays: inRounds(REPLAY_START, write(stepReplays)),
      expire: async (input) => {
        if (expiredUpTo === EXPIRE_START) void cancelTheRest();
        const { next } = await write(expire)({ ...input, after: expiredUpTo });
        expiredUpTo = next ?? EXPIRE_START;
        return { done: next === null };
      },
      prune: inRounds(PRUNE_START, write(prune)),
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
