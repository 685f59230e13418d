/** `flowhook webhooks`: subscribes and manages webhooks; what was delivered is in the files beside this one. */
import type { Command } from 'commander';
import type { WebhookDetail, WebhookSettings } from 'flowhook-client';
import { reasonMistake, urlMistake } from '../../model/webhook.ts';
import { durationWords, grouped } from '../../std/amounts.ts';
import { changesFrom, DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS } from '../../webhooks/subscribe.ts';
import { UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { type Options, repeated } from '../options.ts';
import { onTarget, onWebhook, onWorkflow, soleTeam, type Target, type TargetTeam } from '../target.ts';
import { addYes, columns, confirm, type Head, print, say, table } from '../terminal.ts';
import { addDeliveries } from './deliveries.ts';
import { addListen, eventNames } from './listen.ts';

const PAUSED_BY = 'Paused at the command line';
const MAX_URL_SHOWN = 60;
/** How many waiting deliveries are counted at most before an unsubscription. */
const MOST_COUNTED = 1_000;

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('webhooks: subscribe URLs to events, manage them, and see what was delivered');

  const list = webhooks
    .command('list')
    .description('list webhooks, oldest first')
    .option('--workflow <id>', 'only webhooks of this workflow')
    .option('--team <slug>', 'only webhooks of this team');
  onTarget(list, listWebhooks);

  const one = (
    name: string,
    description: string,
    action: (team: TargetTeam, id: string, options: Options) => Promise<void>,
    check?: (options: Options) => void,
  ) =>
    onTarget(
      webhooks.command(name).description(description).argument('<webhook>', 'its id, or its URL'),
      (target, webhook: string, options: Options) =>
        onWebhook(target, webhook, (team, id) => action(team, id, options)),
      { check: (_webhook: string, options) => check?.(options) },
    );
  one('show', 'show one webhook: its settings and its state', async (team, id, options) =>
    printWebhook(await team.client.webhooks.get(id), team, options),
  );

  const subscribing = webhooks
    .command('subscribe')
    .description('subscribe a URL to the events of a workflow; repeating it only ends a pause')
    .usage('[options] [workflow] <url>')
    .argument('<workflow>', 'its id; if left out, every workflow of the team, including later ones')
    .argument('[url]', 'where to: http:// or https://')
    .option('--events <names>', 'comma-separated (default: *, every event)')
    .option('--team <slug>', 'the team, if several have a workflow with this id, or no workflow is given');
  onTarget(subscribing, subscribe, {
    check: (first: string, second: string | undefined, options) => {
      eventNames(options);
      if (second === undefined && !first.includes('://')) {
        throw new UsageError(
          `Say where to: subscribe ${first} https://…, or the URL alone for all workflows`,
        );
      }
      refuseWrongUrl(second ?? first);
    },
  });

  addYes(one('unsubscribe', 'end a subscription for good; waiting deliveries are not sent', unsubscribe));
  one(
    'set',
    'change the settings of a webhook; those not given stay as they are',
    async (team, id, options) =>
      printWebhook(await team.client.webhooks.update(id, settingsFrom(options)), team, options),
  )
    .option('--ordered', 'one delivery at a time, in the order of the events')
    .option('--no-ordered', 'several at once')
    .option('--rate <number>', 'requests per second at most, or none')
    .option('--timeout <seconds>', 'for one attempt')
    .option('--header <name:value>', 'send this header (may be repeated); replaces all that it had', repeated)
    .option('--no-headers', 'send no headers of its own');
  one(
    'pause',
    'pause a webhook; its deliveries wait',
    async ({ client }, id, options) => {
      const webhook = await client.webhooks.pause(id, { reason: String(options.reason ?? PAUSED_BY) });
      print(options, webhook, [`paused ${id}`]);
    },
    ({ reason }) => {
      const mistake = reason === undefined ? undefined : reasonMistake(String(reason));
      if (mistake !== undefined) throw new UsageError(mistake.replace('`reason`', '--reason'));
    },
  ).option('--reason <text>', 'why');
  one('resume', 'end the pause; waiting deliveries are sent', async ({ client }, id, options) =>
    print(options, await client.webhooks.resume(id), [`resumed ${id}`]),
  );
  one('secret', 'print the secret that signs its deliveries (v1, HMAC-SHA256)', async (team, id, options) => {
    const secret = await team.client.webhooks.secret(id);
    print(options, { id, secret }, [secret]);
  });
  addYes(
    one(
      'rotate',
      'give it a new secret and print it; the old one also signs for a while',
      rotate,
      (options) => void overlapHoursFrom(options),
    ).option(
      '--overlap-hours <hours>',
      `for how long, 0 to ${MAX_OVERLAP_HOURS}; 0 asks first (default: ${DEFAULT_OVERLAP_HOURS})`,
    ),
  );
  addDeliveries(webhooks);
  addListen(webhooks);
}

const HEADS: readonly Head[] = [
  { name: 'webhook' },
  { name: 'workflow', drop: 2 },
  { name: 'state' },
  { name: 'events', drop: 1 },
  { name: 'url' },
];

async function listWebhooks(target: Target, options: Options): Promise<void> {
  const listOf = async ({ client, slug }: TargetTeam, workflowId?: string) => {
    const webhooks = await Array.fromAsync(client.webhooks.listDetails({ workflowId, limit: 1_000 }));
    const team = webhooks.length === 0 ? '' : await slug();
    return webhooks.map((webhook) => ({ team, ...webhook }));
  };
  const found =
    options.workflow === undefined
      ? (await Promise.all(target.teams.map((team) => listOf(team)))).flat()
      : await onWorkflow(target, String(options.workflow), listOf);
  const cells = found.map(({ team, ...webhook }) => [
    webhook.id,
    `${team}/${webhook.workflowId ?? '*'}`,
    standWords(webhook, Date.now()),
    oneLine(webhook.events.join(','), 50),
    oneLine(webhook.url, MAX_URL_SHOWN),
  ]);
  print(options, found, table(cells, process.stdout.columns, HEADS));
  if (found.length > 0 || options.json === true) return;
  say('No webhooks found. `flowhook webhooks subscribe WORKFLOW URL` makes one');
}

async function printWebhook(webhook: WebhookDetail, { slug }: TargetTeam, options: Options): Promise<void> {
  const team = await slug();
  const { settings, breaker } = webhook;
  const rows: (readonly [string, string | null])[] = [
    ['webhook', webhook.id],
    ['workflow', `${team}/${webhook.workflowId ?? '*'}`],
    ['url', webhook.url],
    ['events', webhook.events.join(', ')],
    ['state', standWords(webhook, Date.now())],
    ['paused', webhook.pausedAt],
    ['reason', webhook.pausedReason],
    ['failing since', webhook.failingSince],
    ['held back', breaker.reason],
    ['held back since', breaker.since],
    ['next attempt', breaker.nextAttemptAt],
    ['last success', webhook.lastSuccessAt],
    ['ordered', settings.ordered ? 'yes: one at a time' : 'no'],
    ['rate', settings.ratePerSecond === null ? 'no limit' : `${settings.ratePerSecond} a second`],
    ['timeout', `${settings.timeoutMs / 1_000} s`],
    ['headers', headerWords(settings.headers)],
    ['created', webhook.createdAt],
  ];
  const lines = columns(rows.flatMap(([name, text]) => (text === null ? [] : [[name, text]])));
  print(options, { team, ...webhook }, lines);
}

async function subscribe(
  target: Target,
  first: string,
  second: string | undefined,
  options: Options,
): Promise<void> {
  const events = eventNames(options);
  if (second === undefined) {
    const { client } = await soleTeam(target, 'There are several teams, and no workflow is named');
    const webhook = await client.webhooks.subscribeToAll({ url: first, events });
    print(options, webhook, [webhook.id]);
    return say(`Subscribed to all workflows: webhook ${webhook.id}.`);
  }
  await onWorkflow(target, first, async ({ client }, workflowId) => {
    const { webhookId, message } = await client.webhooks.subscribe({ workflowId, url: second, events });
    print(options, await client.webhooks.get(webhookId), [webhookId]);
    say(message);
  });
}

async function unsubscribe({ client }: TargetTeam, id: string, options: Options): Promise<void> {
  if (options.yes !== true) {
    const webhook = await client.webhooks.get(id);
    const waiting = client.webhooks.deliveries(id, { state: ['waiting'], limit: MOST_COUNTED });
    const count = (await waiting.take(MOST_COUNTED + 1)).length;
    const few = `${grouped(Math.min(count, MOST_COUNTED))} waiting ${count === 1 ? 'delivery' : 'deliveries'}`;
    const more = count > MOST_COUNTED ? ' or more' : '';
    await confirm(options, {
      what:
        `The webhook ${id} (${webhook.url}) will be removed for good, with its secret and ` +
        (count === 0 ? 'no waiting deliveries' : `${few}${more}, which will not be sent`),
      otherwise: 'nothing was removed',
    });
  }
  await client.webhooks.unsubscribe(id);
  print(options, { id, unsubscribed: true }, [`unsubscribed ${id}`]);
}

async function rotate({ client }: TargetTeam, id: string, options: Options): Promise<void> {
  const overlapHours = overlapHoursFrom(options);
  if (overlapHours === 0 && options.yes !== true) {
    await confirm(options, {
      what:
        `The secret of the webhook ${id} (${(await client.webhooks.get(id)).url}) will end at once: its receiver ` +
        'refuses every delivery until it has the new one (--overlap-hours lets both sign for a while)',
      otherwise: 'the secret stays as it is',
    });
  }
  const { secret, overlapUntil } = await client.webhooks.rotate(id, { overlapHours });
  print(options, { id, secret, overlapUntil }, [secret]);
  if (overlapHours > 0) say(`The old secret also signs until ${overlapUntil}`);
}

/** @throws UsageError unless a webhook can have this URL */
function refuseWrongUrl(url: string): void {
  const mistake = urlMistake(url)?.replace('`webhookUrl`', `The URL "${url}"`);
  if (mistake === undefined) return;
  const whole = `http://${url}`;
  const advice = !url.includes('://') && urlMistake(whole) === undefined ? `. Did you mean ${whole}?` : '';
  throw new UsageError(mistake + advice);
}

/** What `set` changes; what is not named stays as it is. @throws UsageError; Problem `field_invalid` */
function settingsFrom({ ordered, rate, timeout, header, headers }: Options): WebhookSettings {
  // Checked here as well: as JSON, a number that is none would be null, which means no limit.
  return changesFrom({
    ...(ordered === undefined ? {} : { ordered: ordered === true }),
    ...(rate === undefined ? {} : { ratePerSecond: rate === 'none' ? null : Number(rate) }),
    ...(timeout === undefined ? {} : { timeoutMs: Math.round(Number(timeout) * 1_000) }),
    ...(headers === false ? { headers: null } : header === undefined ? {} : { headers: headersFrom(header) }),
  });
}

/** For how long the old secret also signs. @throws UsageError */
function overlapHoursFrom({ overlapHours }: Options): number {
  const hours = Number(overlapHours ?? DEFAULT_OVERLAP_HOURS);
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return hours;
  throw new UsageError(
    `--overlap-hours must be a number from 0 to ${MAX_OVERLAP_HOURS}, found "${overlapHours}"`,
  );
}

function headersFrom(lines: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines as string[]) {
    const [, name, value] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new UsageError(`--header must be name:value, found "${line}"`);
    headers[name] = value ?? '';
  }
  return headers;
}

/** `active, took one 3 min ago`, `failing for 2 h`, `paused`. */
function standWords({ state, failingSince, lastSuccessAt }: WebhookDetail, nowMs: number): string {
  const ago = (iso: string) => durationWords(Math.max(0, nowMs - Date.parse(iso)));
  if (state === 'paused') return 'paused';
  if (failingSince !== null) return `failing for ${ago(failingSince)}`;
  return lastSuccessAt === null ? 'active' : `active, took one ${ago(lastSuccessAt)} ago`;
}

function headerWords(names: readonly string[] | null): string | null {
  if (names === null) return 'cannot be opened with this encryption key: set them anew with --header';
  return names.length === 0 ? null : names.join(', ');
}
