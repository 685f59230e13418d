/** Sending deliveries again: what a replay would send, what became of it, and what is said to whoever asks. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AttemptOutcome, DELIVERY_STATES, type DeliveryState } from '../model/delivery.ts';
import { breakerReason } from '../model/lane.ts';
import type { Webhook } from '../model/webhook.ts';
import { countWords, grouped } from '../std/amounts.ts';
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import type { HistoryPlace } from '../store/operations/deliveries.ts';
import type { ReplayedDelivery } from '../store/operations/replays.ts';
import type { Store } from '../store/store.ts';

/** Read at once: a few milliseconds on SQLite, whose reads hold the event loop. */
const PART = 500;
/** Deliveries looked at per count, so that counting never takes long. */
const MAX_LOOKED_AT = 50_000;

export interface ReplayPlan {
  /** Epoch milliseconds, both inclusive. */
  since: number;
  until: number;
  states: DeliveryState[];
  /** Events that it would send. */
  count: number;
  /** In which state each of them is; of states that are not chosen, how many more it would send if they were. */
  byState: Record<DeliveryState, number>;
  /** False if there are more than are counted. */
  isComplete: boolean;
}

interface ReplaySelection {
  teamId: string;
  webhookId: string;
  states: readonly DeliveryState[];
  since: number;
  until: number;
}

export async function planReplay(
  { deliveries }: Pick<Store, 'deliveries'>,
  selection: ReplaySelection,
): Promise<ReplayPlan> {
  const chosen = await tally(deliveries, selection);
  const byState = { ...chosen.byState };
  let { isComplete } = chosen;
  for (const state of DELIVERY_STATES) {
    if (selection.states.includes(state)) continue;
    const other = await tally(deliveries, { ...selection, states: [state] });
    byState[state] = other.count;
    isComplete &&= other.isComplete;
  }
  const { since, until } = selection;
  const states = DELIVERY_STATES.filter((state) => selection.states.includes(state));
  return { since, until, states, count: chosen.count, byState, isComplete };
}

async function tally(
  deliveries: Store['deliveries'],
  selection: ReplaySelection,
): Promise<Pick<ReplayPlan, 'count' | 'byState' | 'isComplete'>> {
  const seen = new Set<number>();
  const byState = { waiting: 0, delivered: 0, dead: 0, canceled: 0 };
  let after: HistoryPlace | null | undefined;
  for (let looked = 0; after !== null && looked < MAX_LOOKED_AT; looked += PART) {
    const input = { ...selection, limit: PART };
    const part = await deliveries.replayable(after === undefined ? input : { ...input, after });
    for (const { sequence, state } of part.found) {
      if (seen.has(sequence)) continue;
      seen.add(sequence);
      byState[state] += 1;
    }
    after = part.next;
    await nextTurn();
  }
  return { count: seen.size, byState, isComplete: after === null };
}

/** Deliveries looked at per reading: what a larger replay has sent last is not counted. */
const MAX_READ = 100_000;
/** A replay makes deliveries due one after the other, within this. The first retry after a failure comes later. */
const SOON_MS = 2_000;
/** Kinds of failures that are told; the others count as failed. */
const MAX_FAILURES = 20;

export interface ReplayOutcome {
  arrived: number;
  /** Not tried since the replay began: due, in flight, or held back with their webhook. */
  underWay: number;
  /** Their last attempt failed: `dead`, or to be tried again. */
  failed: number;
  /** Their webhook was unsubscribed. */
  canceled: number;
  /** What the failed ones came to, the most frequent first. */
  failures: ReplayFailure[];
  /** False if the replay has sent more than are counted. */
  isComplete: boolean;
}

interface ReplayFailure {
  outcome: AttemptOutcome | null;
  status: number | null;
  error: string | null;
  count: number;
  /** How many of them are tried again by themselves. */
  retried: number;
}

export async function replayOutcome(
  { deliveries, now }: Pick<Store, 'deliveries' | 'now'>,
  { teamId, id, createdAt }: { teamId: string; id: string; createdAt: number },
): Promise<ReplayOutcome> {
  const sum = { arrived: 0, underWay: 0, failed: 0, canceled: 0 };
  const failures = new Map<string, ReplayFailure>();
  let after = 0;
  let isComplete = false;
  for (let looked = 0; !isComplete && looked < MAX_READ; looked += PART) {
    const part = await deliveries.replayed({ teamId, id, after, limit: PART });
    for (const delivery of part) {
      const kind = kindOf(delivery, { createdAt, now: now() });
      sum[kind] += 1;
      if (kind === 'failed') count(failures, delivery);
    }
    after = part.at(-1)?.sequence ?? after;
    isComplete = part.length < PART;
    await nextTurn();
  }
  const most = [...failures.values()].sort((a, b) => b.count - a.count).slice(0, MAX_FAILURES);
  return { ...sum, failures: most, isComplete };
}

/**
 * One that was under way when the replay made it due ends as an attempt that began before: what says that it was tried
 * is that it is due later again.
 */
function kindOf(
  { state, nextAt, last }: ReplayedDelivery,
  { createdAt, now }: { createdAt: number; now: number },
) {
  switch (state) {
    case 'delivered':
      return 'arrived';
    case 'canceled':
      return 'canceled';
    case 'dead':
      return 'failed';
    default:
      return last !== null && (last.at >= createdAt || (nextAt ?? 0) > now + SOON_MS) ? 'failed' : 'underWay';
  }
}

function count(failures: Map<string, ReplayFailure>, { state, last }: ReplayedDelivery): void {
  const key = JSON.stringify([last?.outcome, last?.status, last?.error]);
  const known = failures.get(key) ?? {
    outcome: last?.outcome ?? null,
    status: last?.status ?? null,
    error: last?.error ?? null,
    count: 0,
    retried: 0,
  };
  known.count += 1;
  if (state === 'waiting') known.retried += 1;
  failures.set(key, known);
}

/**
 * Why a webhook does not simply get what is sent again; null when it does.
 *
 * @param nowMs epoch milliseconds
 */
export function whatHoldsBack(
  { state, breaker }: Pick<Webhook, 'state' | 'breaker'>,
  nowMs: number,
): string | null {
  if (state === 'paused') return 'The webhook is paused: nothing is sent until it is resumed';
  const reason = breaker === null ? null : breakerReason(breaker, nowMs);
  if (reason === null || breaker?.state === 'half_open') return reason;
  return `${reason}: one request tries it now, and the others follow once it succeeds`;
}

/** What becomes of a test event. @param breaker why the webhook is held back, and when what waits goes out (ISO 8601) */
export function testWords(
  { state }: Pick<Webhook, 'state'>,
  { reason, nextAttemptAt }: { reason: string | null; nextAttemptAt: string | null },
): string {
  if (state === 'paused') return 'The webhook is paused: the test is sent when it is resumed';
  if (reason === null) return 'Test event on its way';
  // Asked for again with its idempotency key, the test may be over.
  if (nextAttemptAt === null) return `The test does not wait any more. ${reason}`;
  return `The test waits. ${reason}; the next attempt goes out at ${nextAttemptAt}`;
}

/** @param asked how many deliveries were named; @param retried how many of them still waited */
export function sentAgainWords({ asked, retried }: { asked: number; retried: number }): string {
  if (retried === 0) return asked === 1 ? 'The event is on its way once more' : 'On their way once more';
  if (asked === 1) return 'The event was still waiting; the same delivery is due now';
  return `On their way; ${grouped(retried)} of them still waited, and are due now`;
}

/** `It would send 6 events: 4 waiting, 2 dead`; of nothing, what there is instead. */
export function planWords({
  count,
  states,
  byState,
  isComplete,
}: Pick<ReplayPlan, 'count' | 'states' | 'byState' | 'isComplete'>): string {
  const least = isComplete ? '' : 'at least ';
  if (count > 0) {
    return `It would send ${least}${countWords(count, 'event')}: ${statesWords(states, byState)}`;
  }
  const others = DELIVERY_STATES.filter((state) => !states.includes(state) && byState[state] > 0);
  const nothing = `There is nothing to send: no delivery of this period is ${states.join(' or ')}`;
  return others.length === 0 ? nothing : `${nothing}. Others are: ${statesWords(others, byState)}`;
}

/** `4 waiting, 2 dead`. */
export function statesWords(
  states: readonly DeliveryState[],
  counts: Readonly<Record<DeliveryState, number>>,
): string {
  return states
    .filter((state) => counts[state] > 0)
    .map((state) => `${grouped(counts[state])} ${state}`)
    .join(', ');
}

/** Joins sentences without a full stop; null is none. */
export function sentences(...parts: (string | null)[]): string {
  return parts.filter((part) => part !== null).join('. ');
}

const EVERY_MS = 1_000;
/** Replayed deliveries that may wait for one webhook: only what is sent soon is created. */
const WAITING = 256;
const STEPS = { first: 32, max: 256 };

export function webhookReplay(deps: ChoreDeps): Chore {
  const { deliveries } = deps.store;
  return choreOnOneNode({
    ...deps,
    name: 'deliveries.replay',
    everyMs: EVERY_MS,
    failed: 'replays.not_stepped',
    work: (signal) => inSteps((limit) => deliveries.stepReplays({ limit, waiting: WAITING }), STEPS, signal),
  });
}
