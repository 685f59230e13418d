/** `flowhook webhooks test|deliveries|delivery|replay`: sends test events, shows deliveries and replays them. */
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Delivery,
  type DeliveryDetail,
  type Flowhook,
  NotFound,
  type Replay,
  type ReplayPlan,
  type WebhookDetail,
} from '../../../../client/src/flowhook-client.ts';
import { DELIVERY_STATES, type DeliveryState, NOT_ARRIVED } from '../../../model/delivery.ts';
import { countWords, durationWords, grouped } from '../../../std/amounts.ts';
import { parseExactly } from '../../../std/exact-json.ts';
import { createLiveLine } from '../../../std/progress-bar.ts';
import { planWords, statesWords } from '../../../webhooks/replay.ts';
import type { Command } from '../../command.ts';
import { UsageError } from '../../exit.ts';
import { inWords, oneLine } from '../../job-words.ts';
import { dateFrom, type Options, someOf, wholeNumber } from '../../options.ts';
import { onDelivery, onTarget, onWebhook, type Target } from '../../target.ts';
import {
  addYes,
  columns,
  confirm,
  type Head,
  print,
  say,
  screen,
  table,
  untilInterrupted,
} from '../../terminal.ts';
import { dateWords } from '../../times.ts';

export const STATES = `of ${DELIVERY_STATES.join(', ')}`;
export const DEFAULT_DELIVERIES = 20;
export const MAX_DELIVERIES = 1_000;
/** The command waits for an attempt for longer than an attempt can take. */
const WAIT_MS = 40_000;

export function addDeliveries(webhooks: Command): void {
  const isWaitedFor = (options: Options) => options.wait === true;

  const test = webhooks
    .command('test')
    .description('send a webhook_test event to a webhook, whether or not it subscribes to that event')
    .withExamples('webhooks test WEBHOOK --wait')
    .argument('<webhook>', 'id or URL of the webhook')
    .option('--wait', 'wait for the attempt and print its outcome (requires a running server)');
  onTarget(test, sendTest, { own: isWaitedFor });

  const deliveries = webhooks
    .command('deliveries')
    .description('list the deliveries of a webhook, newest first')
    .withExamples('webhooks deliveries WEBHOOK --state waiting,dead')
    .argument('<webhook>', 'id or URL of the webhook')
    .option('--state <states>', `only deliveries in these states: comma-separated, ${STATES}`)
    .withValues('--state', DELIVERY_STATES)
    .option('--since <time>', 'only deliveries created at or after this time, such as 2026-11-20T10:00Z')
    .option('--until <time>', 'only deliveries created at or before this time')
    .option(
      '--limit <number>',
      `maximum number of deliveries, up to ${MAX_DELIVERIES} (default: ${DEFAULT_DELIVERIES})`,
    );
  onTarget(deliveries, listDeliveries, { check: (_webhook: string, options) => void filterFrom(options) });

  const delivery = webhooks
    .command('delivery')
    .description('show a delivery with every attempt and its timing')
    .withExamples('webhooks delivery DELIVERY --body')
    .argument('<delivery>', 'id of the delivery')
    .option('--body', 'also print the event and the response bodies');
  onTarget(delivery, showDelivery);

  const replay = webhooks
    .command('replay')
    .description('send a delivery again, or all deliveries of a webhook since a time that have not arrived')
    .withExamples(
      'webhooks replay DELIVERY',
      'webhooks replay WEBHOOK --since 2026-11-20T10:00Z --dry-run',
      'webhooks replay WEBHOOK --since 2026-11-20T10:00Z --wait',
    )
    .argument('<id>', 'id of a delivery; with --since, id or URL of a webhook')
    .option(
      '--since <time>',
      'replay the deliveries created at or after this time, such as 2026-11-20T10:00Z',
    )
    .option('--until <time>', 'replay only deliveries created at or before this time (default: now)')
    .option(
      '--state <states>',
      `replay only deliveries in these states: comma-separated, ${STATES} (default: ${NOT_ARRIVED.join()})`,
    )
    .withValues('--state', DELIVERY_STATES)
    .option('--dry-run', 'only count the events that would be sent')
    .option('--wait', 'wait for the attempts and print the outcome (requires a running server)');
  onTarget(
    addYes(replay),
    (target, id: string, options: Options) =>
      (options.since === undefined ? replayOne : replaySince)(target, id, options),
    {
      own: isWaitedFor,
      check: (id: string, options) =>
        void (options.since === undefined ? rejectRange(id, options) : rangeFrom(options)),
    },
  );
}

async function sendTest(target: Target, webhook: string, options: Options): Promise<void> {
  await onWebhook(target, webhook, async ({ client }, id) => {
    const { state, verifiedAt, format, pausedReason } = await client.webhooks.get(id);
    const isPaused = state === 'paused';
    const { eventId, deliveryId } = await client.webhooks.test(id);
    if (options.wait === true && !target.local?.owned && !isPaused) {
      return waitForAttempt(client, deliveryId, { lookMs: target.lookMs, options });
    }
    print(options, { eventId, deliveryId }, [deliveryId]);
    const isUnverified = isPaused && format === 'mail' && verifiedAt === null;
    const held = isUnverified
      ? `${pausedReason}. To send that mail again, run \`flowhook webhooks verify ${id}\`. The event will be sent then`
      : 'The webhook is paused. The event will be sent when it is resumed';
    say(isPaused ? held : 'The event is queued');
    say(`To see the delivery, run \`flowhook webhooks delivery ${deliveryId}\``);
    warnWithoutServer(target);
  });
}

export const HEADS: readonly Head[] = [
  { name: 'delivery' },
  { name: 'state' },
  { name: 'event' },
  { name: 'created' },
  { name: 'attempts', drop: 1 },
  { name: 'next', drop: 2 },
  { name: 'last response', drop: 3 },
];

async function listDeliveries(target: Target, webhook: string, options: Options): Promise<void> {
  const { limit, ...filter } = filterFrom(options);
  const found = await onWebhook(target, webhook, ({ client }, id) =>
    client.webhooks.deliveries(id, { ...filter, limit }).take(limit),
  );
  print(options, found, table(found.map(cellsOf), process.stdout.columns, HEADS));
  if (found.length > 0 || options.json === true) return;
  say('No deliveries found. To send a test event, run `flowhook webhooks test WEBHOOK`');
}

export function cellsOf(delivery: Delivery): string[] {
  const { id, state, origin, eventType, attempt, createdAt, lastAttempt } = delivery;
  return [
    id,
    state,
    origin === 'event' ? eventType : `${eventType} (${origin})`,
    createdAt,
    countWords(attempt, 'attempt'),
    state === 'waiting' ? nextWords(delivery) : '',
    lastAttempt === null ? '' : oneLine(lastAttempt.message, 100),
  ];
}

async function showDelivery(target: Target, id: string, options: Options): Promise<void> {
  await onDelivery(target, id, async ({ client }) => {
    const shown = await client.deliveries.get(id);
    const webhook = await client.webhooks.get(shown.webhookId).catch((error) => {
      if (error instanceof NotFound) return undefined;
      throw error;
    });
    const now = Date.now();
    const rows: string[][] = [
      ['delivery', shown.id],
      ['webhook', `${shown.webhookId}  ${webhook?.url ?? '(unsubscribed)'}`],
      ['event', `${shown.eventId}  ${shown.eventType}`],
      ['state', shown.state === 'waiting' ? `waiting, ${nextWords(shown)}` : shown.state],
      ['origin', shown.origin],
      ['created', dateWords(shown.createdAt, now)],
    ];
    for (const attempt of shown.attempts) {
      const address = attempt.remoteAddress === null ? '' : ` (${attempt.remoteAddress})`;
      rows.push(
        [`attempt ${attempt.number}`, dateWords(attempt.startedAt, now)],
        ['', `${oneLine(attempt.message, 300)}${address}`],
        ['', timingWords(attempt)],
      );
      if (options.body === true && attempt.response?.body) rows.push(['response', attempt.response.body]);
    }
    const body = options.body === true ? ['', indented(shown.body)] : [];
    print(options, shown, [...columns(rows), ...body]);
  });
}

/** JSON on several lines, with its exact numbers. Another text stays unchanged. */
function indented(body: string): string {
  try {
    return JSON.stringify(parseExactly(body), null, 2);
  } catch {
    return body;
  }
}

export async function replayOne(target: Target, id: string, options: Options): Promise<void> {
  await onDelivery(target, id, async ({ client }) => {
    const { message, ...made } = await client.deliveries.replay(id);
    const { deliveryId, attempt } = made;
    if (options.wait === true && !target.local?.owned && !(await isPaused(client, deliveryId))) {
      return waitForAttempt(client, deliveryId, { lookMs: target.lookMs, options, after: attempt });
    }
    print(options, made, [deliveryId]);
    say(`${message}. To see the delivery, run \`flowhook webhooks delivery ${deliveryId}\``);
    warnWithoutServer(target);
  });
}

async function isPaused(client: Flowhook, deliveryId: string): Promise<boolean> {
  const { webhookId } = await client.deliveries.get(deliveryId);
  return (await client.webhooks.get(webhookId)).state === 'paused';
}

async function replaySince(target: Target, name: string, options: Options): Promise<void> {
  const selection = rangeFrom(options);
  await onWebhook(target, name, async ({ client }, webhookId) => {
    const plan = await client.webhooks.planReplay(webhookId, selection);
    if (!(await confirmReplay(options, plan, await client.webhooks.get(webhookId)))) return;
    // `plan.until` excludes deliveries that were created after the plan that the user confirmed.
    const replay = await client.webhooks.replaySince(webhookId, { ...selection, until: plan.until });
    if (options.wait === true && !target.local?.owned) {
      return printOutcome(await followReplay(client, replay, target.lookMs), options);
    }
    print(options, replay, [replay.id]);
    say('The replay runs on the server, also after a restart. Use --wait to see its outcome');
    warnWithoutServer(target);
  });
}

/**
 * Waits for the next attempt and prints its outcome. Exit code: 0 if the event was delivered, 1 if it was not
 * delivered, 7 if there was no attempt in time.
 *
 * @param after the number of attempts that were made before the wait
 */
async function waitForAttempt(
  client: Flowhook,
  deliveryId: string,
  { lookMs, options, after = 0 }: { lookMs: number; options: Options; after?: number },
): Promise<void> {
  const interrupted = untilInterrupted();
  const until = AbortSignal.any([interrupted.signal, AbortSignal.timeout(WAIT_MS)]);
  try {
    for (;;) {
      // A test of a webhook with a format exists only once its body was made.
      const shown = await client.deliveries.get(deliveryId).catch((error) => {
        if (error instanceof NotFound) return undefined;
        throw error;
      });
      const attempt = shown?.attempts.at(-1);
      if (shown !== undefined && attempt !== undefined && shown.attempt > after) {
        const next = shown.state === 'waiting' ? ` (${nextWords(shown)})` : '';
        print(options, shown, [`${oneLine(attempt.message, 300)}${next}`, timingWords(attempt)]);
        process.exitCode = attempt.outcome === 'ok' ? 0 : 1;
        return;
      }
      if (until.aborted) {
        print(options, shown ?? { id: deliveryId }, []);
        process.exitCode = 7;
        say(
          `The event has not been sent yet. Is a server running? To check again, run \`flowhook webhooks delivery ${deliveryId}\``,
        );
        return;
      }
      await pause(lookMs, undefined, { signal: until }).catch(() => {});
    }
  } finally {
    interrupted.clear();
  }
}

/** Warns if no server is running, because nothing is sent without a server. */
export function warnWithoutServer({ local }: Target): void {
  if (!local?.owned) return;
  say('No server is running on this database. Events are sent after you start one with `flowhook serve`');
  process.exitCode = 6;
}

/** Reads the filter for a list of deliveries from the flags. @throws UsageError */
function filterFrom({ state, since, until, limit }: Options) {
  return {
    limit: wholeNumber('--limit', limit ?? DEFAULT_DELIVERIES, 1, MAX_DELIVERIES),
    state: someOf('--state', state, DELIVERY_STATES),
    since: dateFrom('--since', since),
    until: dateFrom('--until', until),
  };
}

/**
 * Selects the deliveries to replay. By default, it selects all deliveries up to now that have not arrived. @throws
 * UsageError
 */
function rangeFrom(options: Options): { states: DeliveryState[]; since: Date; until?: Date } {
  const since = dateFrom('--since', options.since) as Date;
  const until = dateFrom('--until', options.until);
  if (since > (until ?? new Date())) {
    throw new UsageError('--since must not be later than --until (default: now)');
  }
  const states = someOf('--state', options.state, DELIVERY_STATES) ?? [...NOT_ARRIVED];
  // If `until` is missing, the server uses its own clock to determine the end of the range.
  return { states, since, ...(until === undefined ? {} : { until }) };
}

/** @throws UsageError if the id or a flag belongs to the replay of a whole webhook, not of a single delivery */
function rejectRange(id: string, options: Options): void {
  if (options.until !== undefined || options.state !== undefined || options.dryRun === true) {
    throw new UsageError(
      'The flags --until, --state and --dry-run require --since. Run `flowhook webhooks replay WEBHOOK --since TIME`',
    );
  }
  if (id.startsWith('wh_')) {
    throw new UsageError(
      '--since is missing: to replay deliveries of a webhook, add a time such as `--since 2026-11-20T10:00Z`',
    );
  }
}

/** Says when a delivery is attempted next: `next attempt in 3 min 20 s` or `due now`. */
function nextWords({ nextAttemptAt }: Pick<Delivery, 'nextAttemptAt'>): string {
  if (nextAttemptAt === null) return 'not scheduled';
  const nextAt = Date.parse(nextAttemptAt);
  return nextAt <= Date.now() ? 'due now' : `next attempt ${inWords(nextAt, Date.now())}`;
}

type Attempt = DeliveryDetail['attempts'][number];

/**
 * Describes the timing of an attempt: `573 ms in the queue, 1.2 s to respond (connected at 8 ms, first byte at 1.1 s)`.
 */
export function timingWords({
  durationMs,
  timing,
  status,
}: Pick<Attempt, 'durationMs' | 'timing' | 'status'>): string {
  const steps: (readonly [string, number | null | undefined])[] = [
    ['DNS', timing?.dnsMs],
    ['connected', timing?.connectMs],
    ['TLS', timing?.tlsMs],
    ['first byte', timing?.firstByteMs],
  ];
  const reached = steps.flatMap(([name, ms]) => (ms == null ? [] : [`${name} at ${durationWords(ms)}`]));
  const queued = timing == null ? '' : `${durationWords(timing.queuedMs)} in the queue, `;
  const end = status === null ? 'until the attempt failed' : 'to respond';
  return `${queued}${durationWords(durationMs)} ${end}${reached.length === 0 ? '' : ` (${reached.join(', ')})`}`;
}

/**
 * While following a replay, the command checks at this interval whether the webhook is paused or its circuit breaker is
 * open.
 */
const HELD_EVERY_MS = 1_000;
/**
 * After each read of a replay, the command pauses for the duration of the read times this factor, because large replays
 * are slow to read.
 */
const REST = 5;

/**
 * Shows what a replay would send, and asks for confirmation if it is more than one event. Returns false if there is
 * nothing to send or `--dry-run` is set.
 *
 * @throws UsageError unless the user confirms
 */
async function confirmReplay(
  options: Options,
  plan: ReplayPlan,
  webhook: Pick<WebhookDetail, 'id' | 'url'>,
): Promise<boolean> {
  const { since, until, states, byState, count } = plan;
  const period = `created from ${since} to ${until}`;
  if (options.dryRun === true || (count === 0 && plan.isComplete)) {
    print(options, plan, [`${planWords(plan)} (${period})`]);
    if (count === 0) say('Choose other deliveries with --state, or an earlier time with --since');
    return false;
  }
  const events = `${plan.isComplete ? '' : 'At least '}${countWords(count, 'event')}`;
  const what = `${events} (${statesWords(states, byState)}) ${period} will be sent again to ${webhook.id} (${webhook.url})`;
  if (count > 1) await confirm(options, { what, otherwise: 'nothing was sent' });
  return true;
}

/** Returns the reason why deliveries of the webhook are held back; null if they are not held back. */
function heldWords({ id, state, breaker }: WebhookDetail): string | null {
  if (state === 'paused') {
    return `The webhook is paused. To send its waiting deliveries, run \`flowhook webhooks resume ${id}\``;
  }
  if (breaker.state !== 'open' || breaker.nextAttemptAt === null) return null;
  const now = Date.now();
  if (Date.parse(breaker.nextAttemptAt) <= now) return null;
  return `${breaker.reason}. Next attempt: ${dateWords(breaker.nextAttemptAt, now)}`;
}

/**
 * Follows a replay until every event has been attempted once, deliveries are held back, or the user presses Ctrl-C. The
 * replay itself continues on the server.
 *
 * @returns `held`: the reason why deliveries are held back; null if they are not held back
 */
async function followReplay(
  client: Flowhook,
  { id, webhookId }: Replay,
  lookMs: number,
): Promise<{ replay: Replay; held: string | null }> {
  const look = () => client.webhooks.readReplay(webhookId, id);
  const line = createLiveLine(screen, () => performance.now());
  const interrupted = untilInterrupted();
  let askAtMs = performance.now() + HELD_EVERY_MS;
  try {
    for (;;) {
      const fromMs = performance.now();
      const replay = await look();
      const isOver = replay.state === 'done' && replay.outcome.underWay === 0;
      if (isOver || interrupted.signal.aborted) return { replay, held: null };
      line.show(() => `${replay.id}  ${outcomeWords(replay)}`);
      if (replay.made > 0 && performance.now() >= askAtMs) {
        const reason = heldWords(await client.webhooks.get(webhookId));
        if (reason !== null) return { replay: await look(), held: reason };
        askAtMs = performance.now() + HELD_EVERY_MS;
      }
      const restMs = Math.max(lookMs, REST * (performance.now() - fromMs));
      await pause(restMs, undefined, { signal: interrupted.signal }).catch(() => {});
    }
  } finally {
    line.stop();
    interrupted.clear();
  }
}

/**
 * Prints the outcome of a replay. Exit code: 0 if all events arrived, 1 if some failed, 7 if some were not attempted
 * yet.
 */
function printOutcome({ replay, held }: { replay: Replay; held: string | null }, options: Options): void {
  const { id, state, outcome } = replay;
  print(options, replay, [`${id} ${state}: ${outcomeWords(replay)}`, ...failureWords(outcome)]);
  if (held !== null) say(held);
  const isRunning = state === 'running' || outcome.underWay > 0;
  if (isRunning) say('The replay continues on the server, also after a restart');
  if (outcome.failed + outcome.canceled > 0) process.exitCode = 1;
  else if (isRunning) process.exitCode = 7;
}

/** A line for each kind of failure: `  2 × HTTP 503 (will be retried)`. */
export function failureWords({ failures }: Pick<Replay['outcome'], 'failures'>): string[] {
  return failures.map(({ count, message, retried }) => {
    const next = retried === 0 ? '' : ` (${retried === count ? '' : `${grouped(retried)} `}will be retried)`;
    return `  ${grouped(count)} × ${oneLine(message, 200)}${next}`;
  });
}

function outcomeWords({ made, outcome }: Replay): string {
  return sentWords({ made, ...outcome });
}

type Sent = Pick<Replay, 'made'> & Omit<Replay['outcome'], 'failures' | 'isComplete' | 'superseded'>;

/** Summarizes the outcome of a replay: `12 events sent again: 9 arrived, 2 failed, 1 in progress`. */
export function sentWords(of: Sent & { superseded?: number }): string {
  const { made, arrived, failed, underWay, canceled, superseded = 0 } = of;
  const parts: [number, string][] = [
    [arrived, 'arrived'],
    [failed, 'failed'],
    [underWay, 'in progress'],
    [canceled, 'canceled'],
    [superseded, 'sent again by a later replay'],
  ];
  const words = parts.filter(([count]) => count > 0).map(([count, what]) => `${grouped(count)} ${what}`);
  return `${countWords(made, 'event')} sent again${words.length === 0 ? '' : `: ${words.join(', ')}`}`;
}
