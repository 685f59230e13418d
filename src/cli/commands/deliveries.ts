/** `flowhook webhooks test|deliveries|delivery|replay`: shows what was sent and its outcome, and sends it again. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import {
  type Delivery,
  type DeliveryDetail,
  type Flowhook,
  NotFound,
  type Replay,
  type ReplayPlan,
  type WebhookDetail,
} from 'flowhook-client';
import { DELIVERY_STATES, type DeliveryState, NOT_ARRIVED } from '../../model/delivery.ts';
import { countWords, durationWords, grouped } from '../../std/amounts.ts';
import { createLiveLine } from '../../std/progress-bar.ts';
import { planWords, statesWords } from '../../webhooks/replay.ts';
import { UsageError } from '../exit.ts';
import { inWords, oneLine } from '../job-words.ts';
import { type Options, someOf, timeFrom, wholeNumber } from '../options.ts';
import { onDelivery, onTarget, onWebhook, type Target } from '../target.ts';
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
} from '../terminal.ts';

const STATES = `${DELIVERY_STATES.join(', ')}, comma-separated`;
const DEFAULT_DELIVERIES = 20;
const MAX_DELIVERIES = 1_000;
/** Longer than an attempt may take. */
const WAIT_MS = 40_000;

export function addDeliveries(webhooks: Command): void {
  const isWaitedFor = (options: Options) => options.wait === true;

  const test = webhooks
    .command('test')
    .description('send it a webhook_test event, whatever it is subscribed to')
    .argument('<webhook>', 'its id, or its URL')
    .option('--wait', 'wait for the attempt and print its outcome (a server must be running)');
  onTarget(test, sendTest, { own: isWaitedFor });

  const deliveries = webhooks
    .command('deliveries')
    .description('list the deliveries of a webhook, newest first')
    .argument('<webhook>', 'its id, or its URL')
    .option('--state <states>', `only in these states: ${STATES}`)
    .option('--since <time>', 'created at this time or later: 2026-11-20T10:00Z')
    .option('--until <time>', 'created at this time or earlier')
    .option('--limit <number>', `how many at most (default: ${DEFAULT_DELIVERIES})`);
  onTarget(deliveries, listDeliveries, { check: (_webhook: string, options) => void filterFrom(options) });

  const delivery = webhooks
    .command('delivery')
    .description('show one delivery: every attempt, and where its time went')
    .argument('<delivery>', 'its id')
    .option('--body', 'include the event and the response');
  onTarget(delivery, showDelivery);

  const replay = webhooks
    .command('replay')
    .description('send again: one delivery, or all of a webhook since a time that have not arrived')
    .argument('<id>', 'a delivery, or with --since a webhook')
    .option('--since <time>', 'those created at this time or later: 2026-11-20T10:00Z')
    .option('--until <time>', 'and at this time or earlier (default: now)')
    .option('--state <states>', `only in these states: ${STATES} (default: ${NOT_ARRIVED.join()})`)
    .option('--dry-run', 'only count what would be sent')
    .option('--wait', 'wait for the attempts and print what arrived (a server must be running)');
  onTarget(
    addYes(replay),
    (target, id: string, options: Options) =>
      (options.since === undefined ? replayOne : replaySince)(target, id, options),
    {
      own: isWaitedFor,
      check: (id: string, options) =>
        void (options.since === undefined ? refuseRange(id, options) : rangeFrom(options)),
    },
  );
}

async function sendTest(target: Target, webhook: string, options: Options): Promise<void> {
  await onWebhook(target, webhook, async ({ client }, id) => {
    const isPaused = (await client.webhooks.get(id)).state === 'paused';
    const { eventId, deliveryId } = await client.webhooks.test(id);
    if (options.wait === true && !target.local?.owned && !isPaused) {
      return waitForAttempt(client, deliveryId, { lookMs: target.lookMs, options });
    }
    print(options, { eventId, deliveryId }, [deliveryId]);
    const remark = isPaused ? 'The webhook is paused: it will be sent once that is resumed' : 'On its way';
    say(`${remark}; \`flowhook webhooks delivery ${deliveryId}\` shows it`);
    tellWithoutServer(target);
  });
}

const HEADS: readonly Head[] = [
  { name: 'delivery' },
  { name: 'state' },
  { name: 'event' },
  { name: 'made' },
  { name: 'attempts', drop: 1 },
  { name: 'next', drop: 2 },
  { name: 'last answer', drop: 3 },
];

async function listDeliveries(target: Target, webhook: string, options: Options): Promise<void> {
  const { limit, ...filter } = filterFrom(options);
  const found = await onWebhook(target, webhook, ({ client }, id) =>
    client.webhooks.deliveries(id, { ...filter, limit }).take(limit),
  );
  print(options, found, table(found.map(cellsOf), process.stdout.columns, HEADS));
  if (found.length > 0 || options.json === true) return;
  say('No deliveries found. `flowhook webhooks test WEBHOOK` sends one');
}

function cellsOf(delivery: Delivery): string[] {
  const { id, state, origin, eventType, attempt, createdAt, lastAttempt } = delivery;
  return [
    id,
    state,
    origin === 'event' ? eventType : `${eventType} (${origin})`,
    createdAt,
    attempt === 1 ? '1 attempt' : `${attempt} attempts`,
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
    const rows: string[][] = [
      ['delivery', shown.id],
      ['webhook', `${shown.webhookId}  ${webhook?.url ?? '(unsubscribed)'}`],
      ['event', `${shown.eventId}  ${shown.eventType}`],
      ['state', shown.state === 'waiting' ? `waiting, ${nextWords(shown)}` : shown.state],
      ['origin', shown.origin],
      ['made', shown.createdAt],
    ];
    for (const attempt of shown.attempts) {
      const address = attempt.remoteAddress === null ? '' : ` (${attempt.remoteAddress})`;
      rows.push(
        [`attempt ${attempt.number}`, `${attempt.startedAt}  ${oneLine(attempt.message, 300)}${address}`],
        ['', timingWords(attempt)],
      );
      if (options.body === true && attempt.response?.body) rows.push(['answer', attempt.response.body]);
    }
    const body = options.body === true ? ['', JSON.stringify(shown.event, null, 2)] : [];
    print(options, shown, [...columns(rows), ...body]);
  });
}

async function replayOne(target: Target, id: string, options: Options): Promise<void> {
  await onDelivery(target, id, async ({ client }) => {
    const { message, ...made } = await client.deliveries.replay(id);
    const { deliveryId, attempt } = made;
    if (options.wait === true && !target.local?.owned && !(await isPaused(client, deliveryId))) {
      return waitForAttempt(client, deliveryId, { lookMs: target.lookMs, options, after: attempt });
    }
    print(options, made, [deliveryId]);
    say(`${message}; \`flowhook webhooks delivery ${deliveryId}\` shows it`);
    tellWithoutServer(target);
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
    if (!(await agreeToReplay(options, plan, await client.webhooks.get(webhookId)))) return;
    // What was agreed to, and not what has come since.
    const replay = await client.webhooks.replaySince(webhookId, { ...selection, until: plan.until });
    if (options.wait === true && !target.local?.owned) {
      return printOutcome(await followReplay(client, replay, target.lookMs), options);
    }
    printBegun(replay, options);
    tellWithoutServer(target);
  });
}

/**
 * Prints the outcome of the next attempt. Exit code: 0 delivered, 1 not delivered, 7 no attempt in time.
 *
 * @param after how many attempts there have been before
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
      const shown = await client.deliveries.get(deliveryId);
      const attempt = shown.attempts.at(-1);
      if (attempt !== undefined && shown.attempt > after) {
        const next = shown.state === 'waiting' ? ` (${nextWords(shown)})` : '';
        print(options, shown, [`${oneLine(attempt.message, 300)}${next}`, timingWords(attempt)]);
        process.exitCode = attempt.outcome === 'ok' ? 0 : 1;
        return;
      }
      if (until.aborted) {
        print(options, shown, []);
        process.exitCode = 7;
        say(`It was not sent yet: is a server running? \`flowhook webhooks delivery ${shown.id}\` shows it`);
        return;
      }
      await pause(lookMs, undefined, { signal: until }).catch(() => {});
    }
  } finally {
    interrupted.clear();
  }
}

/** Said in place of waiting when no server is there to send it. */
function tellWithoutServer({ local }: Target): void {
  if (!local?.owned) return;
  say('No server is running on this database: it will be sent once one is (`flowhook serve`)');
  process.exitCode = 6;
}

/** Which deliveries are listed. @throws UsageError */
function filterFrom({ state, since, until, limit }: Options) {
  return {
    limit: wholeNumber('--limit', limit ?? DEFAULT_DELIVERIES, 1, MAX_DELIVERIES),
    state: someOf('--state', state, DELIVERY_STATES),
    since: dateFrom('--since', since),
    until: dateFrom('--until', until),
  };
}

/** Which deliveries a replay sends again: by default all that have not arrived, up to now. @throws UsageError */
function rangeFrom(options: Options): { states: DeliveryState[]; since: Date; until?: Date } {
  const since = dateFrom('--since', options.since) as Date;
  const until = dateFrom('--until', options.until);
  if (since > (until ?? new Date())) {
    throw new UsageError('--since must not be after --until, which is now unless told');
  }
  const states = someOf('--state', options.state, DELIVERY_STATES) ?? [...NOT_ARRIVED];
  // Otherwise until now, by the clock of the server.
  return { states, since, ...(until === undefined ? {} : { until }) };
}

function dateFrom(flag: string, value: unknown): Date | undefined {
  const ms = timeFrom(flag, value);
  return ms === undefined ? undefined : new Date(ms);
}

/** @throws UsageError unless a single delivery is named, without flags of a range */
function refuseRange(id: string, options: Options): void {
  if (options.until !== undefined || options.state !== undefined || options.dryRun === true) {
    throw new UsageError('--until, --state and --dry-run belong to --since: replay WEBHOOK --since TIME');
  }
  if (id.startsWith('wh_')) {
    throw new UsageError('Of a webhook, say since when: replay WEBHOOK --since 2026-11-20T10:00Z');
  }
}

/** `next try in 3 min 20 s`, `due now`. */
function nextWords({ nextAttemptAt }: Pick<Delivery, 'nextAttemptAt'>): string {
  if (nextAttemptAt === null) return 'waits';
  const nextAt = Date.parse(nextAttemptAt);
  return nextAt <= Date.now() ? 'due now' : `next try ${inWords(nextAt, Date.now())}`;
}

type Attempt = DeliveryDetail['attempts'][number];

/** Where the time of an attempt went: `1.2 s after waiting 3 ms: name 20 ms, connection 8 ms, first byte 1.1 s`. */
export function timingWords({ durationMs, timing }: Pick<Attempt, 'durationMs' | 'timing'>): string {
  const steps: (readonly [string, number | null | undefined])[] = [
    ['name', timing?.dnsMs],
    ['connection', timing?.connectMs],
    ['TLS', timing?.tlsMs],
    ['first byte', timing?.firstByteMs],
  ];
  const said = steps.flatMap(([name, ms]) => (ms == null ? [] : [`${name} ${durationWords(ms)}`]));
  const waited = timing == null ? '' : ` after waiting ${durationWords(timing.queuedMs)}`;
  return `${durationWords(durationMs)}${waited}${said.length === 0 ? '' : `: ${said.join(', ')}`}`;
}

/** How often it is read whether the webhook is held back. */
const HELD_EVERY_MS = 1_000;
/** How much longer than a reading took is waited before the next one: readings of large replays are not cheap. */
const REST = 5;

/**
 * Says what a replay would send, and asks if that is more than one event. Returns false if there is nothing to send, or
 * if it is only to be counted.
 *
 * @throws UsageError unless the user agrees
 */
async function agreeToReplay(
  options: Options,
  plan: ReplayPlan,
  webhook: Pick<WebhookDetail, 'id' | 'url'>,
): Promise<boolean> {
  const { since, until, states, byState, count } = plan;
  const period = `created from ${since} to ${until}`;
  if (options.dryRun === true || (count === 0 && plan.isComplete)) {
    print(options, plan, [`${planWords(plan)} (${period})`]);
    if (count === 0) say('--state STATES chooses others, --since an earlier time');
    return false;
  }
  const events = `${plan.isComplete ? '' : 'At least '}${countWords(count, 'event')}`;
  const what = `${events} (${statesWords(states, byState)}) ${period} will be sent again to ${webhook.id} (${webhook.url})`;
  if (count > 1) await confirm(options, { what, otherwise: 'nothing was sent' });
  return true;
}

/** Why nothing goes out for a while; null if something does. */
function heldWords({ id, state, breaker }: WebhookDetail): string | null {
  if (state === 'paused') return `The webhook is paused; \`flowhook webhooks resume ${id}\` sends what waits`;
  if (breaker.state !== 'open' || breaker.nextAttemptAt === null) return null;
  if (Date.parse(breaker.nextAttemptAt) <= Date.now()) return null;
  return `${breaker.reason}; the next attempt goes out at ${breaker.nextAttemptAt}`;
}

/**
 * Follows a replay until all that it sends was tried once, its webhook is held back, or Ctrl-C; the replay itself goes on
 * in the server.
 *
 * @returns `held`: why nothing goes out for a while
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

/** Prints what became of a replay. Exit code: 0 all arrived, 1 some failed, 7 some were not tried yet. */
function printOutcome({ replay, held }: { replay: Replay; held: string | null }, options: Options): void {
  const { id, state, outcome } = replay;
  const failures = outcome.failures.map(({ count, message, retried }) => {
    const next =
      retried === 0
        ? ''
        : retried === count
          ? ' (tried again later)'
          : ` (${grouped(retried)} tried again later)`;
    return `  ${grouped(count)} × ${oneLine(message, 200)}${next}`;
  });
  print(options, replay, [`${id} ${state}: ${outcomeWords(replay)}`, ...failures]);
  if (held !== null) say(held);
  if (state === 'running' || outcome.underWay > 0) say('It goes on in the server, also after a restart');
  if (outcome.failed + outcome.canceled > 0) process.exitCode = 1;
  else if (state === 'running' || outcome.underWay > 0) process.exitCode = 7;
}

/** Prints a replay that is not followed. */
function printBegun(replay: Replay, options: Options): void {
  print(options, replay, [replay.id]);
  say('It goes on in the server, also after a restart; --wait tells what arrived');
}

/** `12 events sent again: 9 arrived, 2 failed, 1 under way`. */
function outcomeWords({ made, outcome }: Replay): string {
  const { arrived, failed, underWay, canceled, superseded } = outcome;
  const parts: [number, string][] = [
    [arrived, 'arrived'],
    [failed, 'failed'],
    [underWay, 'under way'],
    [canceled, 'canceled'],
    [superseded, 'sent again by a later replay'],
  ];
  const said = parts.filter(([count]) => count > 0).map(([count, what]) => `${grouped(count)} ${what}`);
  return `${countWords(made, 'event')} sent again${said.length === 0 ? '' : `: ${said.join(', ')}`}`;
}
