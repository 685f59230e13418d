/** Retries of what has not arrived at any webhook: the plan, the start and the outcome. */

import { DELIVERY_STATES } from '../model/delivery.ts';
import { Problem } from '../model/error.ts';
import { countWords, grouped } from '../std/amounts.ts';
import type { Replay } from '../store/operations/deliveries/replays.ts';
import { MAX_RETRIED_WEBHOOKS, type RetrySelection } from '../store/operations/deliveries/retries.ts';
import type { IdempotencyKey } from '../store/operations/idempotency.ts';
import type { Store } from '../store/store.ts';
import {
  MAX_LOOKED_AT,
  MAX_READ,
  type ReplayOutcome,
  type ReplayPlan,
  replayOutcome,
  statesWords,
  tally,
  whatHoldsBack,
} from './replay.ts';

/** Number of webhooks per read. */
const PAGE = 250;

type Counts = Pick<ReplayPlan, 'count' | 'byState' | 'isComplete'>;

/** What a retry would send, in total and per webhook. */
export interface RetryPlan extends Counts, Pick<ReplayPlan, 'since' | 'until' | 'states'> {
  /** Webhooks with events to send. `held`: why the webhook does not receive them immediately; null if it does. */
  webhooks: (Pick<Counts, 'count' | 'byState'> & {
    webhookId: string;
    name: string | null;
    url: string;
    held: string | null;
  })[];
}

/** Counts the events that a retry would send, in at most 50,000 deliveries. @throws Problem `field_invalid` */
export async function planRetry(
  { deliveries, webhooks, now }: Pick<Store, 'deliveries' | 'webhooks' | 'now'>,
  selection: RetrySelection,
): Promise<RetryPlan> {
  const { teamId, since, until } = selection;
  const states = DELIVERY_STATES.filter((state) => selection.states.includes(state));
  const plan: RetryPlan = {
    since,
    until,
    states,
    count: 0,
    byState: noneByState(),
    isComplete: true,
    webhooks: [],
  };
  let room = MAX_LOOKED_AT;
  for (const webhookId of await webhooksOf(deliveries, selection)) {
    const { looked, count, byState, isComplete } = await tally(deliveries, { ...selection, webhookId }, room);
    room -= looked;
    plan.isComplete &&= isComplete;
    const webhook = count === 0 ? undefined : await webhooks.get({ teamId, id: webhookId });
    if (webhook === undefined) continue;
    const { name, url } = webhook;
    plan.webhooks.push({ webhookId, name, url, count, byState, held: whatHoldsBack(webhook, now()) });
    plan.count += count;
    for (const state of states) plan.byState[state] += byState[state];
  }
  return plan;
}

/**
 * Starts a replay for each webhook with selected deliveries. Returns the id of the retry; undefined if there is nothing
 * to send. @throws Problem `field_invalid` if there are more than 1,000 such webhooks; `idempotency_key_reused`
 */
export async function startRetry(
  { deliveries }: Pick<Store, 'deliveries'>,
  { webhookId: _, label: _label, ...selection }: RetrySelection,
  webhookIds: readonly string[],
  idempotencyKey: IdempotencyKey,
): Promise<string | undefined> {
  return deliveries.startRetry({ ...selection, webhookIds, idempotencyKey });
}

/** The webhooks with deliveries in the selected states and period. @throws Problem `field_invalid` */
export async function webhooksOf(
  deliveries: Pick<Store['deliveries'], 'retryable'>,
  selection: RetrySelection,
): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await deliveries.retryable({ ...selection, after: ids.at(-1), limit: PAGE });
    ids.push(...page.map(({ id }) => id));
    if (ids.length > MAX_RETRIED_WEBHOOKS) {
      throw new Problem('field_invalid', {
        sentence: `The selected deliveries belong to more than ${grouped(MAX_RETRIED_WEBHOOKS)} webhooks. Choose fewer with \`workflowId\`, \`webhookId\` or a shorter period`,
      });
    }
    if (page.length < PAGE) return ids;
  }
}

/** The results of a retry: of all its webhooks, and of each. */
export interface RetryOutcome {
  state: Replay['state'];
  made: number;
  total: Omit<ReplayOutcome, 'failures'>;
  webhooks: { replay: Replay; outcome: ReplayOutcome }[];
}

/** Reads the outcome of the replays of a retry, from at most 100,000 deliveries. */
export async function retryOutcome(
  store: Pick<Store, 'deliveries' | 'now'>,
  replays: readonly Replay[],
): Promise<RetryOutcome> {
  const total = { arrived: 0, underWay: 0, failed: 0, canceled: 0, isComplete: true };
  const webhooks: RetryOutcome['webhooks'] = [];
  let room = MAX_READ;
  for (const replay of replays) {
    const outcome = await replayOutcome(store, replay, room);
    room -= Math.min(room, replay.made);
    for (const kind of ['arrived', 'underWay', 'failed', 'canceled'] as const) total[kind] += outcome[kind];
    total.isComplete &&= outcome.isComplete;
    webhooks.push({ replay, outcome });
  }
  const made = replays.reduce((sum, replay) => sum + replay.made, 0);
  const isRunning = replays.some(({ state }) => state === 'running');
  return { state: isRunning ? 'running' : 'done', made, total, webhooks };
}

/** `The retry would send 43 events to 3 webhooks: 40 waiting, 3 dead`. */
export function retryWords(
  plan: Counts & Pick<RetryPlan, 'states'> & { webhooks: readonly unknown[] },
): string {
  const { count, states, byState, isComplete, webhooks } = plan;
  if (count === 0 && isComplete) return 'There is nothing to send: no selected delivery can be sent again';
  const least = isComplete ? '' : 'at least ';
  const to = countWords(webhooks.length, 'webhook');
  return `The retry would send ${least}${countWords(count, 'event')} to ${to}: ${statesWords(states, byState)}`;
}

function noneByState(): ReplayPlan['byState'] {
  return { waiting: 0, delivered: 0, dead: 0, canceled: 0 };
}
