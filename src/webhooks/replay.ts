/** Sending deliveries again: the plan and the outcome of a replay, and the messages about a replay. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AttemptOutcome, DELIVERY_STATES, type DeliveryState } from '../model/delivery.ts';
import { breakerReason } from '../model/lane.ts';
import type { Webhook } from '../model/webhook.ts';
import { countWords, grouped } from '../std/amounts.ts';
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';
import type { HistoryPlace } from '../store/operations/deliveries/deliveries.ts';
import { keyOfMessage, type ReplayedDelivery } from '../store/operations/deliveries/replays.ts';
import type { Narrowing } from '../store/operations/deliveries/search.ts';
import { quietMs } from '../store/quiet.ts';
import type { Store } from '../store/store.ts';

/** Number of rows per read. A read takes a few milliseconds on SQLite, whose reads block the event loop. */
const PART = 500;
/** Maximum number of deliveries that are read to count events, so that counting is always fast. */
export const MAX_LOOKED_AT = 50_000;

export interface ReplayPlan {
  /** Epoch milliseconds, both inclusive. */
  since: number;
  until: number;
  states: DeliveryState[];
  /** Number of events that the replay would send. */
  count: number;
  /**
   * Number of events by state. For a state that is not selected: how many more events would be sent if it were
   * selected.
   */
  byState: Record<DeliveryState, number>;
  /** False if there are more events than the service has counted. */
  isComplete: boolean;
}

interface ReplaySelection {
  teamId: string;
  narrowing?: Narrowing;
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

/**
 * Counts the events that a replay would send. @param most number of deliveries that are read at most
 * @returns `looked`: number of deliveries that were read
 */
export async function tally(
  deliveries: Store['deliveries'],
  selection: ReplaySelection,
  most = MAX_LOOKED_AT,
): Promise<Pick<ReplayPlan, 'count' | 'byState' | 'isComplete'> & { looked: number }> {
  const seen = new Set<string>();
  const byState = { waiting: 0, delivered: 0, dead: 0, canceled: 0 };
  let after: HistoryPlace | null | undefined;
  let looked = 0;
  for (; after !== null && looked < most; looked += PART) {
    const input = { ...selection, limit: PART };
    const part = await deliveries.replayable(after === undefined ? input : { ...input, after });
    for (const { state, ...message } of part.found) {
      const key = keyOfMessage(message);
      if (seen.has(key)) continue;
      seen.add(key);
      byState[state] += 1;
    }
    after = part.next;
    await nextTurn();
  }
  return { count: seen.size, byState, isComplete: after === null, looked };
}

/**
 * Maximum number of deliveries that are read for the outcome of a replay. The newest deliveries of a larger replay are
 * not counted.
 */
export const MAX_READ = 100_000;
/**
 * A replay makes deliveries due one at a time, at most this far in the future. The first retry after a failure comes
 * later than this.
 */
const SOON_MS = 2_000;
/** Maximum number of different failures that are listed. */
const MAX_FAILURES = 20;

export interface ReplayOutcome {
  arrived: number;
  /**
   * Number of deliveries not attempted since the replay started: due, in flight, or held back because of their webhook.
   */
  underWay: number;
  /** Number of deliveries whose last attempt failed: they are `dead`, or will be retried. */
  failed: number;
  /** Number of deliveries canceled because the webhook was unsubscribed. */
  canceled: number;
  /** The failures, most frequent first. */
  failures: ReplayFailure[];
  /** False if the replay has sent more deliveries than the service has counted. */
  isComplete: boolean;
}

interface ReplayFailure {
  outcome: AttemptOutcome | null;
  status: number | null;
  error: string | null;
  count: number;
  /** Number of these deliveries that will be retried automatically. */
  retried: number;
}

export async function replayOutcome(
  { deliveries, now }: Pick<Store, 'deliveries' | 'now'>,
  { teamId, id, createdAt }: { teamId: string; id: string; createdAt: number },
  limit = MAX_READ,
): Promise<ReplayOutcome> {
  const sum = { arrived: 0, underWay: 0, failed: 0, canceled: 0 };
  const failures = new Map<string, ReplayFailure>();
  let last: ReplayedDelivery | undefined;
  let isComplete = false;
  for (let looked = 0; !isComplete && looked < limit; looked += PART) {
    const after =
      last === undefined ? { after: 0 } : { after: last.sequence, afterMessageId: last.messageId };
    const part = await deliveries.replayed({ teamId, id, ...after, limit: PART });
    for (const delivery of part) {
      const kind = kindOf(delivery, { createdAt, now: now() });
      sum[kind] += 1;
      if (kind === 'failed') count(failures, delivery);
    }
    last = part.at(-1) ?? last;
    isComplete = part.length < PART;
    await nextTurn();
  }
  const most = [...failures.values()].sort((a, b) => b.count - a.count).slice(0, MAX_FAILURES);
  return { ...sum, failures: most, isComplete };
}

/**
 * If an attempt was running when the replay made its delivery due, the last attempt of the delivery started before the
 * replay. Such a delivery counts as attempted if its next attempt is more than `SOON_MS` away.
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

/** Why a webhook does not receive a resent event immediately; null if it does. `nowMs` is in epoch milliseconds. */
export function whatHoldsBack(
  { state, breaker }: Pick<Webhook, 'state' | 'breaker'>,
  nowMs: number,
): string | null {
  if (state === 'paused') return 'The webhook is paused: nothing is sent until it is resumed';
  const reason = breaker === null ? null : breakerReason(breaker, nowMs);
  if (reason === null || breaker?.state === 'half_open') return reason;
  return `${reason}. One event is sent now; the other events follow if its request succeeds`;
}

/**
 * The message about a test event.
 *
 * @param breaker.reason why the webhook is held back; null if it is not
 * @param breaker.nextAttemptAt when the next attempt starts, in ISO 8601
 */
export function testWords(
  { state }: Pick<Webhook, 'state'>,
  { reason, nextAttemptAt }: { reason: string | null; nextAttemptAt: string | null },
): string {
  if (state === 'paused') return 'The webhook is paused: the test is sent when it is resumed';
  if (reason === null) return 'The test event is being sent';
  // A client may repeat a request with the same idempotency key after the test has ended.
  if (nextAttemptAt === null) return `The test is no longer waiting. ${reason}`;
  return `The test is waiting. ${reason}. Next attempt: ${nextAttemptAt}`;
}

/**
 * @param asked number of deliveries that the user asked to send again
 * @param retried number of these deliveries that were still waiting
 */
export function sentAgainWords({ asked, retried }: { asked: number; retried: number }): string {
  if (retried === 0) return asked === 1 ? 'The event is being sent again' : 'The events are being sent again';
  if (asked === 1) return 'The delivery was still waiting, and is due now';
  return `The events are being sent again; ${grouped(retried)} deliveries were still waiting, and are due now`;
}

/**
 * `It would send 6 events: 4 waiting, 2 dead`. If the replay would send nothing, the sentence says which other
 * deliveries exist.
 */
export function planWords({
  count,
  states,
  byState,
  isComplete,
}: Pick<ReplayPlan, 'count' | 'states' | 'byState' | 'isComplete'>): string {
  const least = isComplete ? '' : 'at least ';
  if (count > 0) {
    return `The replay would send ${least}${countWords(count, 'event')}: ${statesWords(states, byState)}`;
  }
  const others = DELIVERY_STATES.filter((state) => !states.includes(state) && byState[state] > 0);
  const nothing = `There is nothing to send: no delivery of this period is ${states.join(' or ')}`;
  return others.length === 0 ? nothing : `${nothing}. Other deliveries: ${statesWords(others, byState)}`;
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

/** Joins sentences that have no period, and skips null. */
export function sentences(...parts: (string | null)[]): string {
  return parts.filter((part) => part !== null).join('. ');
}

const EVERY_MS = 1_000;
/**
 * Maximum number of waiting replayed deliveries per webhook. A replay creates only the deliveries that are sent soon.
 */
const WAITING = 256;
const STEPS = { first: 32, max: 256 };

export function webhookReplay(deps: ChoreDeps): Chore {
  const { store } = deps;
  const { deliveries } = store;
  return choreOnOneNode({
    ...deps,
    name: 'deliveries.replay',
    everyMs: EVERY_MS,
    failed: 'replays.not_stepped',
    work: (signal) =>
      inSteps<Awaited<ReturnType<typeof deliveries.stepReplays>>['next']>(
        (limit, after) => deliveries.stepReplays({ limit, waiting: WAITING, after }),
        STEPS,
        signal,
      ),
    quietMs: () => quietMs(store, async () => ((await deliveries.replaysRun()) ? store.now() : null)),
    watch: (poller) => store.watch(({ deliveries: touched }) => touched && poller.wake()),
  });
}
