/**
 * `flowhook webhooks`: manages webhooks. `destinations.ts`, `deliveries.ts`, `rules.ts` and `listen.ts` define its other
 * subcommands.
 */
import type { WebhookChanges, WebhookDetail } from '../../../client/src/flowhook-client.ts';
import { EVENT_TYPES } from '../../model/event.ts';
import { destinationWords } from '../../model/messages/destination.ts';
import { reasonMistake } from '../../model/webhook.ts';
import { grouped } from '../../std/amounts.ts';
import { changesFrom, DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS } from '../../webhooks/change-webhook.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { type Options, oneOf, repeated } from '../options.ts';
import { onTarget, onWebhook, onWorkflow, type Target, type TargetTeam } from '../target.ts';
import { addYes, confirm, fields, type Head, print, say, table } from '../terminal.ts';
import { agoWords, dateWords, elapsedWords } from '../times.ts';
import { addDeliveries } from './deliveries/deliveries.ts';
import { addDestinations, addTextFlags, namedFieldsFrom, rejectInvalidUrl } from './destinations.ts';
import { addListen, eventNames } from './listen.ts';
import { addRuleFlags, addRules, digestWords } from './rules.ts';

const PAUSED_BY = 'Paused at the command line';
const MAX_URL_SHOWN = 60;
const MAX_FILTER_SHOWN = 80;
const MAX_NAME_SHOWN = 40;
/** `webhooks unsubscribe` counts at most this many waiting deliveries. */
const MOST_COUNTED = 1_000;

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('subscribe URLs to events, manage webhooks, and inspect deliveries');

  const list = webhooks
    .command('list')
    .description('list webhooks, oldest first')
    .withExamples(
      'webhooks list',
      'webhooks list --workflow people',
      'webhooks list --label customer:acme --sort -failingSince',
    )
    .option('--workflow <id>', 'only webhooks of this workflow')
    .option('--label <label>', 'only webhooks with this label')
    .option(
      '--search <text>',
      'only webhooks with this text in the name, the description, the URL or a label',
    )
    .option(
      '--sort <field>',
      `sort by ${SORTS.join(', ')}, or in reverse order with a - before the field (default: oldest first)`,
    )
    .withValues('--sort', SORTS)
    .option('--team <slug>', 'only webhooks of this team');
  onTarget(list, listWebhooks, { check: (options) => void listingFrom(options) });

  const one = (
    name: string,
    description: string,
    action: (team: TargetTeam, id: string, options: Options) => Promise<void>,
    check?: (options: Options) => void | Promise<void>,
  ) =>
    onTarget(
      webhooks
        .command(name)
        .description(description)
        .withExamples(`webhooks ${name} WEBHOOK`)
        .argument('<webhook>', 'id or URL of the webhook'),
      (target, webhook: string, options: Options) =>
        onWebhook(target, webhook, (team, id) => action(team, id, options)),
      { check: (_webhook: string, options) => check?.(options) },
    );
  one('show', 'show the settings and the state of a webhook', async (team, id, options) =>
    printWebhook(await team.client.webhooks.get(id), team, options),
  );

  addDestinations(webhooks);
  addYes(
    one(
      'unsubscribe',
      'delete a webhook permanently; its waiting deliveries are not sent',
      unsubscribe,
    ).withExamples('webhooks unsubscribe WEBHOOK', 'webhooks unsubscribe https://example.com/hook'),
  );
  const setting = one(
    'set',
    'change the URL, the events, the texts, the rule or settings of a webhook; all others keep their values',
    async (team, id, options) => {
      const changes = { ...settingsFrom(options), ...(await namedFieldsFrom(options)) };
      const { message, ...webhook } = await team.client.webhooks.update(id, changes);
      await printWebhook(webhook, team, options);
      if (changes.url !== undefined) say(message);
      if (changes.rotateSecret === true) say(`Print the new secret with \`flowhook webhooks secret ${id}\``);
    },
    async (options) => {
      settingsFrom(options);
      await namedFieldsFrom(options);
    },
  )
    .withExamples(
      'webhooks set WEBHOOK --ordered --rate 5 --timeout 10',
      'webhooks set WEBHOOK --header "x-token: abc"',
      'webhooks set WEBHOOK --to https://example.com/new --events job.failed',
      'webhooks set WEBHOOK --label customer:acme --label tier:gold',
      `webhooks set WEBHOOK --filter 'risesAbove(previous.price, record.price, 50)' --cooldown 6h`,
      'webhooks set WEBHOOK --digest 08:00 --time-zone Europe/Zurich',
    )
    .option('--to <url>', 'new URL; waiting deliveries go there, too')
    .option('--events <names>', 'new events, comma-separated; they apply to later events')
    .withValues('--events', EVENT_TYPES)
    .option('--rotate-secret', 'replace the signing secret immediately, for another receiver at the new URL')
    .option('--ordered', 'send one delivery at a time, in the order of the events')
    .option('--no-ordered', 'send several deliveries at the same time')
    .option('--rate <number>', 'maximum number of requests per second, or none for no limit')
    .option('--timeout <seconds>', 'timeout of an attempt, in seconds')
    .option(
      '--header <name:value>',
      'send this header with every delivery (repeatable); replaces all headers set before',
      repeated,
    )
    .option('--no-headers', 'remove all headers set before')
    .option('--no-name', 'remove the name')
    .option('--no-description', 'remove the description')
    .option('--no-labels', 'remove all labels');
  addTextFlags(setting);
  addRuleFlags(setting, { removes: true });
  one(
    'pause',
    'pause a webhook; its deliveries wait until it is resumed',
    async ({ client }, id, options) => {
      const webhook = await client.webhooks.pause(id, { reason: String(options.reason ?? PAUSED_BY) });
      print(options, webhook, [`paused ${id}`]);
    },
    ({ reason }) => {
      const mistake = reason === undefined ? undefined : reasonMistake(String(reason));
      if (mistake !== undefined) throw new UsageError(mistake.replace('`reason`', '--reason'));
    },
  )
    .withExamples('webhooks pause WEBHOOK --reason "moving house"')
    .option('--reason <text>', 'reason of the pause, which `webhooks show` prints');
  one(
    'resume',
    'end the pause of a webhook and send its waiting deliveries',
    async ({ client }, id, options) => print(options, await client.webhooks.resume(id), [`resumed ${id}`]),
  );
  one(
    'verify',
    'send the mail again that confirms the address of a webhook: at most five within 24 hours',
    async ({ client }, id, options) => {
      const { message, webhook } = await client.webhooks.verify(id);
      print(options, webhook, [id]);
      say(message);
    },
  );
  one('secret', 'print the signing secret of a webhook (v1, HMAC-SHA256)', async (team, id, options) => {
    const secret = await team.client.webhooks.secret(id);
    print(options, { id, secret }, [secret]);
  });
  addYes(
    one(
      'rotate',
      'give a webhook a new signing secret and print it; for some hours, deliveries are also signed with the ' +
        'old secret',
      rotate,
      (options) => void overlapHoursFrom(options),
    )
      .withExamples('webhooks rotate WEBHOOK --overlap-hours 24')
      .option(
        '--overlap-hours <hours>',
        `hours for which deliveries are also signed with the old secret, 0 to ${MAX_OVERLAP_HOURS}; 0 ` +
          `requires confirmation (default: ${DEFAULT_OVERLAP_HOURS})`,
      ),
  );
  addDeliveries(webhooks);
  addRules(webhooks);
  addListen(webhooks);
}

const SORTS = ['name', 'createdAt', 'lastSuccessAt', 'failingSince'] as const;

/** Which webhooks to list, in which order. @throws UsageError */
function listingFrom({ label, search, sort }: Options) {
  const field = sort === undefined ? undefined : oneOf('--sort', String(sort).replace(/^-/, ''), SORTS);
  const isReverse = String(sort).startsWith('-');
  return {
    label: label === undefined ? undefined : String(label),
    q: search === undefined ? undefined : String(search),
    sort: field === undefined ? undefined : isReverse ? (`-${field}` as const) : field,
  };
}

const HEADS: readonly Head[] = [
  { name: 'webhook' },
  { name: 'workflow', drop: 2 },
  { name: 'state' },
  { name: 'events', drop: 1 },
  { name: 'destination' },
  { name: 'digest', drop: 4 },
  { name: 'filter', drop: 3 },
  { name: 'name', drop: 5 },
  { name: 'labels', drop: 6 },
];

async function listWebhooks(target: Target, options: Options): Promise<void> {
  const listing = listingFrom(options);
  const listOf = async ({ client, slug }: TargetTeam, workflowId?: string) => {
    const webhooks = await Array.fromAsync(
      client.webhooks.listDetails({ workflowId, limit: 1_000, ...listing }),
    );
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
    stateWords(webhook, Date.now()),
    oneLine(webhook.events.join(','), 50),
    oneLine(destinationWords(webhook.url, webhook.format), MAX_URL_SHOWN),
    digestWords(webhook.digest) ?? '',
    oneLine(webhook.filter ?? '', MAX_FILTER_SHOWN),
    oneLine(webhook.name ?? '', MAX_NAME_SHOWN),
    oneLine(webhook.labels.join(','), MAX_NAME_SHOWN),
  ]);
  print(options, found, table(cells, process.stdout.columns, HEADS));
  if (found.length > 0 || options.json === true) return;
  say('No webhooks found. Create one with `flowhook webhooks subscribe WORKFLOW URL`');
}

async function printWebhook(webhook: WebhookDetail, { slug }: TargetTeam, options: Options): Promise<void> {
  const team = await slug();
  const { settings, breaker } = webhook;
  const now = Date.now();
  const lines = fields([
    ['webhook', webhook.id],
    ['name', webhook.name],
    ['description', webhook.description],
    ['labels', webhook.labels.join(', ') || null],
    ['workflow', `${team}/${webhook.workflowId ?? '*'}`],
    ['url', webhook.url],
    ['events', webhook.events.join(', ')],
    ...ruleWords(webhook),
    ['verified', dateWords(webhook.verifiedAt, now)],
    ['state', stateWords(webhook, now)],
    ['paused', dateWords(webhook.pausedAt, now)],
    ['reason', webhook.pausedReason],
    ['failing since', dateWords(webhook.failingSince, now)],
    ['held back', breaker.reason],
    ['held back since', dateWords(breaker.since, now)],
    ['next attempt', dateWords(breaker.nextAttemptAt, now)],
    ['last success', dateWords(webhook.lastSuccessAt, now)],
    ['ordered', settings.ordered ? 'yes: one delivery at a time' : 'no'],
    ['rate', settings.ratePerSecond === null ? 'no limit' : `${settings.ratePerSecond} per second`],
    ['timeout', `${settings.timeoutMs / 1_000} s`],
    ['headers', headerWords(settings.headers)],
    ['created', dateWords(webhook.createdAt, now)],
  ]);
  print(options, { team, ...webhook }, lines);
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
        `The webhook ${id} (${webhook.url}) and its secret will be permanently deleted` +
        (count === 0 ? '' : `, and ${few}${more} will not be sent`),
      otherwise: 'nothing was deleted',
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
        `The secret of the webhook ${id} (${(await client.webhooks.get(id)).url}) will stop signing immediately, so ` +
        'its receiver will reject deliveries until it has the new secret (--overlap-hours avoids this)',
      otherwise: 'the secret was not changed',
    });
  }
  const { secret, overlapUntil } = await client.webhooks.rotate(id, { overlapHours });
  print(options, { id, secret, overlapUntil }, [secret]);
  if (overlapHours > 0)
    say(`Deliveries are also signed with the old secret until ${dateWords(overlapUntil, Date.now())}`);
}

/** Returns the settings that `webhooks set` changes. @throws UsageError; Problem `field_invalid` */
function settingsFrom(options: Options): WebhookChanges {
  const { ordered, rate, timeout, header, headers, to, events, rotateSecret } = options;
  if (to !== undefined) rejectInvalidUrl(String(to));
  const settings = {
    ...(to === undefined ? {} : { url: String(to) }),
    ...(events === undefined ? {} : { events: eventNames(options) }),
    ...(rotateSecret === undefined ? {} : { rotateSecret: true }),
    ...(ordered === undefined ? {} : { ordered: ordered === true }),
    ...(rate === undefined ? {} : { ratePerSecond: rate === 'none' ? null : Number(rate) }),
    ...(timeout === undefined ? {} : { timeoutMs: Math.round(Number(timeout) * 1_000) }),
    ...(headers === false ? { headers: null } : header === undefined ? {} : { headers: headersFrom(header) }),
  };
  // The values are checked here as well as on the server, because JSON turns NaN into null, which means no limit.
  if (Object.keys(settings).length > 0) changesFrom(settings);
  return settings;
}

/** Returns the number of hours during which deliveries are also signed with the old secret. @throws UsageError */
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

/** Describes the state of a webhook: `active, last success 3 min ago`, `failing for 2 h` or `paused`. */
function stateWords({ state, failingSince, lastSuccessAt }: WebhookDetail, nowMs: number): string {
  if (state === 'paused') return 'paused';
  if (failingSince !== null) return `failing for ${elapsedWords(failingSince, nowMs)}`;
  return lastSuccessAt === null ? 'active' : `active, last success ${agoWords(lastSuccessAt, nowMs)}`;
}

function ruleWords(webhook: WebhookDetail): [string, string | null][] {
  const { filter, format, template, firstVersion, cooldown, digest, timeZone, filterMistake } = webhook;
  return [
    ['filter', filter],
    ['filter failed', filterMistake && `${filterMistake.message} (event ${filterMistake.eventId})`],
    ['format', format === 'standard' ? null : format],
    ['template', template === null ? null : oneLine(JSON.stringify(template), 200)],
    ['first version', filter === null ? null : firstVersion === 'send' ? 'sent' : 'skipped'],
    ['cooldown', cooldown],
    ['digest', digestWords(digest)],
    ['times in', timeZone],
  ];
}

function headerWords(names: readonly string[] | null): string | null {
  if (names === null) return 'unreadable with this encryption key: set them again with --header';
  return names.length === 0 ? null : names.join(', ');
}
