/** `flowhook webhooks test|deliveries|delivery|replay`: what was sent, what came of it, and sending it once more. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { shownDelivery, shownDeliveryDetail, shownReplay } from '../http/extensions/shown-delivery.ts';
import { DELIVERY_STATES, type DeliveryState } from '../model/delivery.ts';
import { Problem } from '../model/error.ts';
import { toIso } from '../std/clock.ts';
import { parseIsoTime } from '../std/iso-time.ts';
import { createLiveLine } from '../std/live-line.ts';
import type { Store } from '../store/store.ts';
import type { Replay } from '../store/webhook-operations.ts';
import { UsageError } from './exit.ts';
import { oneOf, wholeNumber } from './find.ts';
import { findDelivery, findWebhook } from './find-webhook.ts';
import { untilInterrupted } from './follow-job.ts';
import { oneLine } from './job-words.ts';
import { addStoreOptions, print, withStore } from './open.ts';
import { say, screen } from './say.ts';
import type { Options } from './settings.ts';
import { deliveryCells, nextWords, timingWords } from './webhook-words.ts';
import { columns, countWords } from './words.ts';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;
/** How often what is waited for is looked at: a read of one row. */
const LOOK_MS = 100;
/** As long as an attempt may take, with something to spare. */
const WAIT_MS = 40_000;
const STATES = `of ${DELIVERY_STATES.join(', ')}, with commas between`;

export function addWebhookDeliveries(webhooks: Command): void {
  const test = webhooks
    .command('test')
    .description('send it an event webhook_test, whatever it has subscribed')
    .argument('<webhook>', 'its id, or its URL')
    .option('--wait', 'wait for the attempt, and tell what it came to (a server must run)');
  addStoreOptions(test).action((id: string, options: Options) =>
    withStore(options, { make: false, own: options.wait === true }, (store, _config, owned) =>
      sendTest(store, id, { options, owned }),
    ),
  );

  const deliveries = webhooks
    .command('deliveries')
    .description('list the deliveries of a webhook, newest first')
    .argument('<webhook>', 'its id, or its URL')
    .option('--state <states>', `only in these states, ${STATES}`)
    .option('--since <time>', 'made at this time or later: 2026-11-20T10:00Z')
    .option('--until <time>', 'made at this time or earlier')
    .option('--limit <number>', `at most so many (default: ${DEFAULT_LIMIT})`);
  addStoreOptions(deliveries).action(listDeliveries);

  const delivery = webhooks
    .command('delivery')
    .description('show one delivery: every attempt, and where its time went')
    .argument('<delivery>', 'its id')
    .option('--body', 'also the event, and what was answered');
  addStoreOptions(delivery).action((id: string, options: Options) =>
    withStore(options, { make: false }, async (store) => {
      await showDelivery(store, id, options);
    }),
  );

  const replay = webhooks
    .command('replay')
    .description('send once more: a delivery, or all deliveries of a webhook since a time that are dead')
    .argument('<id>', 'a delivery, or with --since a webhook')
    .option('--since <time>', 'those made at this time or later: 2026-11-20T10:00Z')
    .option('--until <time>', 'and at this time or earlier (default: now)')
    .option('--state <states>', `${STATES} (default: dead)`)
    .option('--wait', 'follow the replay to its end (a server must run)');
  addStoreOptions(replay).action((id: string, options: Options) =>
    withStore(options, { make: false, own: options.wait === true }, (store, _config, owned) =>
      (options.since === undefined ? replayOne : replaySince)(store, id, { options, owned }),
    ),
  );
}

/** What a command was told, and whether no server runs: then it is this process that owns the database. */
interface Asked {
  options: Options;
  owned: boolean;
}

async function sendTest(store: Store, name: string, { options, owned }: Asked): Promise<void> {
  const { teamId, id, state } = await findWebhook(store, name);
  const made = await store.webhooks.test({ teamId, id });
  if (made === undefined) throw new Problem('webhook_not_found');
  if (options.wait !== true || owned || state === 'paused') {
    print(options, made, [made.deliveryId]);
    const remark = state === 'paused' ? 'The webhook is paused: it is sent when it is resumed' : 'On its way';
    say(`${remark}; \`flowhook webhooks delivery ${made.deliveryId}\` shows it`);
    if (owned) noServer();
    return;
  }
  await waitForAttempt(store, { teamId, id: made.deliveryId }, options);
}

/** Tells what the first attempt came to; the exit code is 0 delivered, 1 not, 7 when there was none in time. */
async function waitForAttempt(
  store: Store,
  target: { teamId: string; id: string },
  options: Options,
): Promise<void> {
  const interrupted = untilInterrupted();
  const until = AbortSignal.any([interrupted.signal, AbortSignal.timeout(WAIT_MS)]);
  try {
    for (;;) {
      const delivery = await store.deliveries.get(target);
      if (delivery === undefined) throw new Problem('delivery_not_found');
      const shown = shownDeliveryDetail(delivery);
      const attempt = shown.attempts.at(-1);
      if (attempt !== undefined) {
        const next = delivery.state === 'waiting' ? ` (${nextWords(delivery, store.now())})` : '';
        print(options, shown, [`${oneLine(attempt.message, 300)}${next}`, timingWords(attempt)]);
        process.exitCode = attempt.outcome === 'ok' ? 0 : 1;
        return;
      }
      if (until.aborted) {
        print(options, shown, []);
        process.exitCode = interrupted.signal.aborted ? 1 : 7;
        say(`It was not sent yet: is a server running? \`flowhook webhooks delivery ${target.id}\` shows it`);
        return;
      }
      await pause(LOOK_MS, undefined, { signal: until }).catch(() => {});
    }
  } finally {
    interrupted.clear();
  }
}

async function listDeliveries(name: string, options: Options): Promise<void> {
  const limit = wholeNumber('--limit', options.limit ?? DEFAULT_LIMIT, 1, MAX_LIMIT);
  const states = statesFrom(options.state);
  const since = timeFrom('--since', options.since);
  const until = timeFrom('--until', options.until);
  await withStore(options, { make: false }, async (store) => {
    const { teamId, id } = await findWebhook(store, name);
    const found = await store.deliveries.list({
      teamId,
      webhookId: id,
      ...(states === undefined ? {} : { states }),
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
      limit,
    });
    const cells = found.map((delivery) => deliveryCells(delivery, store.now()));
    print(options, found.map(shownDelivery), columns(cells));
    if (found.length > 0 || options.json === true) return;
    say('There is no such delivery. `flowhook webhooks test` makes one');
  });
}

async function showDelivery(store: Store, id: string, options: Options): Promise<void> {
  const { teamId, found } = await findDelivery(store, id);
  const shown = shownDeliveryDetail(found);
  const webhook = await store.webhooks.get({ teamId, id: found.webhookId });
  const rows: string[][] = [
    ['delivery', shown.id],
    ['webhook', `${shown.webhookId}  ${webhook?.url ?? '(unsubscribed)'}`],
    ['event', `${shown.eventId}  ${shown.eventType}`],
    ['state', found.state === 'waiting' ? `waiting, ${nextWords(found, store.now())}` : found.state],
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
}

async function replayOne(store: Store, id: string, { options, owned }: Asked): Promise<void> {
  if (options.until !== undefined || options.state !== undefined) {
    throw new UsageError('--until and --state belong to --since: replay WEBHOOK --since TIME');
  }
  if (id.startsWith('wh_')) {
    throw new UsageError('Of a webhook, say since when: replay WEBHOOK --since 2026-11-20T10:00Z');
  }
  const { teamId } = await findDelivery(store, id);
  const made = (await store.deliveries.replay({ teamId, ids: [id] }))?.[0];
  if (made === undefined) throw new Problem('webhook_not_found');
  if (options.wait === true && !owned) return waitForAttempt(store, { teamId, id: made }, options);
  print(options, { deliveryId: made }, [made]);
  say(`On its way once more; \`flowhook webhooks delivery ${made}\` shows it`);
  if (owned) noServer();
}

async function replaySince(store: Store, name: string, { options, owned }: Asked): Promise<void> {
  const since = timeFrom('--since', options.since) as number;
  const until = timeFrom('--until', options.until) ?? store.now();
  if (since > until) throw new UsageError('--since must not be after --until, which is now unless told');
  const states = statesFrom(options.state) ?? ['dead' as const];
  const { teamId, id: webhookId } = await findWebhook(store, name);
  const replay = await store.deliveries.startReplay({ teamId, webhookId, states, since, until });
  if (replay === undefined) throw new Problem('webhook_not_found');
  const range = `${states.join(', ')} from ${toIso(since)} to ${toIso(until)}`;
  say(`Replay ${replay.id} of deliveries ${range}`);
  const seen = options.wait === true && !owned ? await followReplay(store, replay) : replay;
  const words =
    seen.state === 'done' ? `${replay.id} done: ${countWords(seen.made, 'event')} sent anew` : replay.id;
  print(options, shownReplay(seen), [words]);
  if (seen.state === 'running') say('It goes on in the server, also over a restart');
  if (owned) noServer();
}

/** Said to whoever wanted to wait: there is nobody who would send it. */
function noServer(): void {
  say('No server runs on this database: it is sent once one does (`flowhook serve`)');
  process.exitCode = 6;
}

async function followReplay(store: Store, replay: Replay): Promise<Replay> {
  const line = createLiveLine(screen, () => performance.now());
  const interrupted = untilInterrupted();
  let now = replay;
  try {
    while (now.state === 'running' && !interrupted.signal.aborted) {
      line.show(() => `${now.id}  ${now.made.toLocaleString('en-GB')} made`);
      await pause(LOOK_MS, undefined, { signal: interrupted.signal }).catch(() => {});
      now = (await store.deliveries.getReplay({ teamId: replay.teamId, id: replay.id })) ?? now;
    }
    return now;
  } finally {
    line.stop();
    interrupted.clear();
  }
}

function statesFrom(names: unknown): DeliveryState[] | undefined {
  if (names === undefined) return undefined;
  return String(names)
    .split(',')
    .map((name) => oneOf('--state', name.trim(), DELIVERY_STATES));
}

function timeFrom(flag: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseIsoTime(String(value));
  if (ms !== undefined) return ms;
  throw new UsageError(`${flag} must be a time with its zone, such as 2026-11-20T10:00Z, found "${value}"`);
}
