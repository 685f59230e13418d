/** `flowhook webhooks test|deliveries|delivery|replay`: shows what was sent and its outcome, and sends it again. */
import type { Command } from 'commander';
import { DELIVERY_STATES, NOT_ARRIVED } from '../model/delivery.ts';
import { Problem } from '../model/error.ts';
import { shownDelivery, shownDeliveryDetail, shownPlan, shownReplay } from '../resources/delivery.ts';
import { shownBreaker } from '../resources/webhook.ts';
import type { Store } from '../store/store.ts';
import { replayOutcome } from '../webhooks/replay-outcome.ts';
import { planReplay } from '../webhooks/replay-plan.ts';
import { sentAgainWords, sentences, whatHoldsBack } from '../webhooks/send-again.ts';
import { addYes } from './confirm.ts';
import { findDelivery, findWebhook } from './find-webhook.ts';
import { agreeToReplay, followReplay, heldWords, printBegun, printOutcome } from './follow-replay.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { listDeliveriesAt, replayAt, sendTestAt, showDeliveryAt } from './remote-deliveries.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import {
  printDeliveries,
  printDelivery,
  printSentAgain,
  sayOnItsWay,
  waitForAttempt,
} from './show-delivery.ts';
import { DEFAULT_DELIVERIES, filterFrom, rangeFrom, refuseRange } from './webhook-flags.ts';

/** How often a delivery is read while waiting: one row. */
const LOOK_MS = 100;
const STATES = `${DELIVERY_STATES.join(', ')}, comma-separated`;

export function addWebhookDeliveries(webhooks: Command): void {
  const test = webhooks
    .command('test')
    .description('send it a webhook_test event, whatever it is subscribed to')
    .argument('<webhook>', 'its id, or its URL')
    .option('--wait', 'wait for the attempt and print its outcome (a server must be running)');
  orRemote(
    addStoreOptions(test),
    (id: string, options: Options) =>
      withStore(options, { make: false, own: options.wait === true }, (store, _config, owned) =>
        sendTest(store, id, { options, owned }),
      ),
    sendTestAt,
  );

  const deliveries = webhooks
    .command('deliveries')
    .description('list the deliveries of a webhook, newest first')
    .argument('<webhook>', 'its id, or its URL')
    .option('--state <states>', `only in these states: ${STATES}`)
    .option('--since <time>', 'created at this time or later: 2026-11-20T10:00Z')
    .option('--until <time>', 'created at this time or earlier')
    .option('--limit <number>', `how many at most (default: ${DEFAULT_DELIVERIES})`);
  orRemote(addStoreOptions(deliveries), listDeliveries, listDeliveriesAt);

  const delivery = webhooks
    .command('delivery')
    .description('show one delivery: every attempt, and where its time went')
    .argument('<delivery>', 'its id')
    .option('--body', 'include the event and the response');
  orRemote(
    addStoreOptions(delivery),
    (id: string, options: Options) =>
      withStore(options, { make: false }, (store) => showDelivery(store, id, options)),
    showDeliveryAt,
  );

  const replay = webhooks
    .command('replay')
    .description('send again: one delivery, or all of a webhook since a time that have not arrived')
    .argument('<id>', 'a delivery, or with --since a webhook')
    .option('--since <time>', 'those created at this time or later: 2026-11-20T10:00Z')
    .option('--until <time>', 'and at this time or earlier (default: now)')
    .option('--state <states>', `only in these states: ${STATES} (default: ${NOT_ARRIVED.join()})`)
    .option('--dry-run', 'only count what would be sent')
    .option('--wait', 'wait for the attempts and print what arrived (a server must be running)');
  orRemote(
    addStoreOptions(addYes(replay)),
    (id: string, options: Options) =>
      withStore(options, { make: false, own: options.wait === true }, (store, _config, owned) =>
        (options.since === undefined ? replayOne : replaySince)(store, id, { options, owned }),
      ),
    replayAt,
  );
}

/** The options of a command, and whether this process owns the database: then no server is running. */
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
    sayOnItsWay(made.deliveryId, state === 'paused');
    if (owned) noServer();
    return;
  }
  await waitForAttempt(attemptsOf(store, { teamId, id: made.deliveryId }), options, () => store.now());
}

function attemptsOf(store: Store, target: { teamId: string; id: string }) {
  const look = async () => {
    const delivery = await store.deliveries.get(target);
    if (delivery === undefined) throw new Problem('delivery_not_found');
    return shownDeliveryDetail(delivery);
  };
  return { look, everyMs: LOOK_MS };
}

async function listDeliveries(name: string, options: Options): Promise<void> {
  const filter = filterFrom(options);
  await withStore(options, { make: false }, async (store) => {
    const { teamId, id } = await findWebhook(store, name);
    const found = await store.deliveries.list({ teamId, webhookId: id, ...filter });
    printDeliveries(found.map(shownDelivery), options, store.now());
  });
}

async function showDelivery(store: Store, id: string, options: Options): Promise<void> {
  const { teamId, found } = await findDelivery(store, id);
  const webhook = await store.webhooks.get({ teamId, id: found.webhookId });
  printDelivery(shownDeliveryDetail(found), webhook?.url, options, store.now());
}

async function replayOne(store: Store, id: string, { options, owned }: Asked): Promise<void> {
  refuseRange(id, options);
  const { teamId, found } = await findDelivery(store, id);
  const made = (await store.deliveries.replay({ teamId, ids: [id] }))?.[0];
  const webhook = await store.webhooks.get({ teamId, id: found.webhookId });
  if (made === undefined || webhook === undefined) throw new Problem('webhook_not_found');
  const { id: deliveryId, attempt } = made;
  const retried = !made.isNew;
  const message = sentences(
    sentAgainWords({ asked: 1, retried: retried ? 1 : 0 }),
    whatHoldsBack(webhook, store.now()),
  );
  if (options.wait === true && !owned && webhook.state !== 'paused') {
    const attempts = attemptsOf(store, { teamId, id: deliveryId });
    return waitForAttempt({ ...attempts, after: attempt }, options, () => store.now());
  }
  printSentAgain({ message, deliveryId, retried, attempt }, options);
  if (owned) noServer();
}

async function replaySince(store: Store, name: string, { options, owned }: Asked): Promise<void> {
  const range = rangeFrom(options, store.now());
  const webhook = await findWebhook(store, name);
  const { teamId, id: webhookId } = webhook;
  const selection = { teamId, webhookId, ...range };
  if (!(await agreeToReplay(options, shownPlan(await planReplay(store, selection)), webhook))) return;
  const replay = await store.deliveries.startReplay(selection);
  if (replay === undefined) throw new Problem('webhook_not_found');
  const { id } = replay;
  const look = async () => {
    const now = (await store.deliveries.getReplay({ teamId, id })) ?? replay;
    return shownReplay(now, await replayOutcome(store, now));
  };
  const held = async () => {
    const now = (await store.webhooks.get({ teamId, id: webhookId })) ?? webhook;
    return heldWords({ ...now, breaker: await shownBreaker({ store }, now) }, store.now());
  };
  if (options.wait === true && !owned) {
    return printOutcome(await followReplay({ look, held, everyMs: LOOK_MS }), options);
  }
  printBegun(await look(), options);
  if (owned) noServer();
}

/** Printed in place of waiting when no server is there to send it. */
function noServer(): void {
  say('No server is running on this database: it will be sent once one is (`flowhook serve`)');
  process.exitCode = 6;
}
