/** `flowhook webhooks`: subscribes and manages webhooks. */

import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { Problem } from '../model/error.ts';
import { reasonMistake, type Webhook } from '../model/webhook.ts';
import { createResolver } from '../net/resolver.ts';
import { type ShownWebhook, shownWebhook } from '../resources/webhook.ts';
import { toIso } from '../std/clock.ts';
import { everyRow } from '../store/page.ts';
import type { Store } from '../store/store.ts';
import { openSealer } from '../teams/encryption-key.ts';
import { changeWebhook } from '../webhooks/change.ts';
import type { WebhookDeps } from '../webhooks/deps.ts';
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, rotateSecret } from '../webhooks/rotate.ts';
import { webhookSecret } from '../webhooks/secret.ts';
import { subscribeWebhook } from '../webhooks/subscribe.ts';
import { addYes } from './confirm.ts';
import { UsageError } from './exit.ts';
import { findTeams, findWorkflow } from './find.ts';
import { findWebhook } from './find-webhook.ts';
import { repeated } from './flag-values.ts';
import { addListen } from './listen.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { listWebhooksAt, subscribeAtServer, WEBHOOK_COMMANDS_AT, webhookIdAt } from './remote-webhooks.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { columns, table } from './table.ts';
import { confirmRotating, confirmUnsubscribing, MOST_COUNTED } from './webhook-confirm.ts';
import { addWebhookDeliveries } from './webhook-deliveries.ts';
import { eventNames, overlapHoursFrom, refuseWrongUrl, settingsFrom } from './webhook-flags.ts';
import { standWords, WEBHOOK_HEADS, webhookCells } from './webhook-words.ts';

const BY = 'Paused at the command line';

type Deps = Pick<WebhookDeps, 'store' | 'sealer'>;

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('webhooks: subscribe URLs to events, manage them, and see what was delivered');

  const list = webhooks
    .command('list')
    .description('list webhooks, oldest first')
    .option('--workflow <id>', 'only webhooks of this workflow')
    .option('--team <slug>', 'only webhooks of this team');
  orRemote(addStoreOptions(list), listWebhooks, listWebhooksAt);

  const one = (
    name: keyof typeof WEBHOOK_COMMANDS_AT,
    description: string,
    action: (webhook: Webhook, deps: Deps, options: Options) => Promise<void>,
  ) => {
    const command = webhooks
      .command(name)
      .description(description)
      .argument('<webhook>', 'its id, or its URL');
    const local = (id: string, options: Options) =>
      withStore(options, { make: false }, async (store, config) => {
        const webhook = await findWebhook(store, id);
        await action(webhook, { store, sealer: await openSealer(config, store) }, options);
      });
    return orRemote(addStoreOptions(command), local, async (server, id: string, options) => {
      await WEBHOOK_COMMANDS_AT[name](server, await webhookIdAt(server, id), options);
    });
  };
  one('show', 'show one webhook: its settings and its state', showWebhook);

  const subscribe = webhooks
    .command('subscribe')
    .description('subscribe a URL to the events of a workflow; repeating it only ends a pause')
    .usage('[options] [workflow] <url>')
    .argument('<workflow>', 'its id; if left out, every workflow of the team, including later ones')
    .argument('[url]', 'where to: http:// or https://')
    .option('--events <names>', 'comma-separated (default: *, every event)')
    .option('--team <slug>', 'the team, if several have a workflow with this id, or no workflow is given');
  orRemote(
    addStoreOptions(subscribe),
    (first: string, second: string | undefined, options: Options) =>
      withStore(options, { make: false }, (store, config) =>
        subscribeAt(
          store,
          config,
          second === undefined ? { url: first } : { workflow: first, url: second },
          options,
        ),
      ),
    subscribeAtServer,
  );

  addYes(one('unsubscribe', 'end a subscription for good; waiting deliveries are not sent', unsubscribe));
  one('set', 'change the settings of a webhook; those not given stay as they are', setWebhook)
    .option('--ordered', 'one delivery at a time, in the order of the events')
    .option('--no-ordered', 'several at once')
    .option('--rate <number>', 'requests per second at most, or none')
    .option('--timeout <seconds>', 'for one attempt')
    .option('--header <name:value>', 'send this header (may be repeated); replaces all that it had', repeated)
    .option('--no-headers', 'send no headers of its own');
  one('pause', 'pause a webhook; its deliveries wait', pauseWebhook).option('--reason <text>', 'why');
  one('resume', 'end the pause; waiting deliveries are sent', resumeWebhook);
  one('secret', 'print the secret that signs its deliveries (v1, HMAC-SHA256)', printSecret);
  addYes(
    one('rotate', 'give it a new secret and print it; the old one also signs for a while', rotate).option(
      '--overlap-hours <hours>',
      `for how long, 0 to ${MAX_OVERLAP_HOURS}; 0 asks first (default: ${DEFAULT_OVERLAP_HOURS})`,
    ),
  );
  addWebhookDeliveries(webhooks);
  addListen(webhooks);
}

async function listWebhooks(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store, config) => {
    const place =
      options.workflow === undefined
        ? undefined
        : await findWorkflow(store, String(options.workflow), options.team);
    const deps = { store, sealer: await openSealer(config, store) };
    const found: { team: string; webhook: ShownWebhook }[] = [];
    for (const { id: teamId, slug } of await findTeams(store, options.team)) {
      if (place !== undefined && place.teamId !== teamId) continue;
      const workflow = place === undefined ? {} : { workflowId: place.workflowId };
      for await (const webhook of everyRow(store.webhooks.list, { teamId, ...workflow })) {
        found.push({ team: slug, webhook: await shownWebhook(deps, webhook) });
      }
    }
    print(
      options,
      found.map(({ team, webhook }) => ({ team, ...webhook })),
      table(
        found.map(({ team, webhook }) => webhookCells(webhook, team, store.now())),
        process.stdout.columns,
        WEBHOOK_HEADS,
      ),
    );
    if (found.length > 0 || options.json === true) return;
    say('No webhooks found. `flowhook webhooks subscribe WORKFLOW URL` makes one');
  });
}

async function showWebhook(webhook: Webhook, deps: Deps, options: Options): Promise<void> {
  const team = await deps.store.teams.get({ teamId: webhook.teamId });
  const shown = await shownWebhook(deps, webhook);
  const { settings } = shown;
  const rows: (readonly [string, string | null])[] = [
    ['webhook', shown.id],
    ['workflow', `${team?.slug ?? webhook.teamId}/${shown.workflowId ?? '*'}`],
    ['url', shown.url],
    ['events', shown.events.join(', ')],
    ['state', standWords(shown, deps.store.now())],
    ['paused', shown.pausedAt],
    ['reason', shown.pausedReason],
    ['failing since', shown.failingSince],
    ['held back', shown.breaker.reason],
    ['held back since', shown.breaker.since],
    ['next attempt', shown.breaker.nextAttemptAt],
    ['last success', shown.lastSuccessAt],
    ['ordered', settings.ordered ? 'yes: one at a time' : 'no'],
    ['rate', settings.ratePerSecond === null ? 'no limit' : `${settings.ratePerSecond} a second`],
    ['timeout', `${settings.timeoutMs / 1_000} s`],
    ['headers', headerWords(settings.headers)],
    ['created', shown.createdAt],
  ];
  print(
    options,
    { team: team?.slug ?? null, ...shown },
    columns(rows.flatMap(([name, text]) => (text === null ? [] : [[name, text]]))),
  );
}

async function subscribeAt(
  store: Store,
  config: Config,
  target: { workflow?: string; url: string },
  options: Options,
): Promise<void> {
  const events = eventNames(options);
  if (target.workflow === undefined && !target.url.includes('://')) {
    throw new UsageError(
      `Say where to: subscribe ${target.url} https://…, or the URL alone for all workflows`,
    );
  }
  refuseWrongUrl(target.url);
  const place =
    target.workflow === undefined
      ? { teamId: await soleTeam(store, options.team), workflowId: null }
      : await findWorkflow(store, target.workflow, options.team);
  const deps = {
    store,
    sealer: await openSealer(config, store),
    policy: config.allowNetworks,
    resolver: createResolver(),
    limit: config.maxWebhooksPerWorkflow,
  };
  const { webhook, message } = await subscribeWebhook(deps, { ...place, url: target.url, events });
  print(options, await shownWebhook(deps, webhook), [webhook.id]);
  say(message);
}

/** The only team, or the one given. @throws UsageError when there are several and none is given */
async function soleTeam(store: Store, slug: unknown): Promise<string> {
  const [only, ...others] = await findTeams(store, slug);
  if (only === undefined)
    throw new UsageError('There is no team yet: `flowhook apply` makes those that files name');
  if (others.length === 0) return only.id;
  const slugs = [only, ...others].map((team) => team.slug).join(', ');
  throw new UsageError(`There are several teams: say which with --team (${slugs}), or name a workflow`);
}

async function unsubscribe({ teamId, id, url }: Webhook, { store }: Deps, options: Options): Promise<void> {
  const limit = MOST_COUNTED + 1;
  await confirmUnsubscribing(options, { id, url }, async () => {
    const found = await store.deliveries.list({ teamId, webhookId: id, states: ['waiting'], limit });
    return found.length;
  });
  if ((await store.webhooks.unsubscribe({ teamId, ids: [id] })) === 0) throw new Problem('webhook_not_found');
  print(options, { id, unsubscribed: true }, [`unsubscribed ${id}`]);
}

async function setWebhook({ teamId, id }: Webhook, deps: Deps, options: Options): Promise<void> {
  const changes = settingsFrom(options);
  await showWebhook(await changeWebhook(deps, { teamId, id, changes }), deps, options);
}

async function pauseWebhook({ teamId, id }: Webhook, deps: Deps, options: Options): Promise<void> {
  const reason = String(options.reason ?? BY);
  const mistake = reasonMistake(reason)?.replace('`reason`', '--reason');
  if (mistake !== undefined) throw new UsageError(mistake);
  const webhook = await deps.store.webhooks.pause({ teamId, id, reason });
  if (webhook === undefined) throw new Problem('webhook_not_found');
  print(options, await shownWebhook(deps, webhook), [`paused ${id}`]);
}

async function resumeWebhook({ teamId, id }: Webhook, deps: Deps, options: Options): Promise<void> {
  const webhook = await deps.store.webhooks.resume({ teamId, id });
  if (webhook === undefined) throw new Problem('webhook_not_found');
  print(options, await shownWebhook(deps, webhook), [`resumed ${id}`]);
}

async function printSecret({ teamId, id }: Webhook, deps: Deps, options: Options): Promise<void> {
  const secret = await webhookSecret(deps, { teamId, id });
  print(options, { id, secret }, [secret]);
}

async function rotate({ teamId, id, url }: Webhook, deps: Deps, options: Options): Promise<void> {
  const overlapHours = overlapHoursFrom(options);
  await confirmRotating(options, { id, url }, overlapHours);
  const { secret, overlapUntil } = await rotateSecret(deps, { teamId, id, overlapHours });
  print(options, { id, secret, overlapUntil: toIso(overlapUntil) }, [secret]);
  if (overlapHours > 0) say(`The old secret also signs until ${toIso(overlapUntil)}`);
}

function headerWords(names: readonly string[] | null): string | null {
  if (names === null) return 'cannot be opened with this encryption key: set them anew with --header';
  return names.length === 0 ? null : names.join(', ');
}
