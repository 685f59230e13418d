/**
 * `flowhook webhooks subscribe|notify`: webhooks that send to a URL, to a mail address or to Slack, Discord or Teams.
 */
import type { NewWebhook, WebhookChanges } from '../../../client/src/flowhook-client.ts';
import { EVENT_TYPES } from '../../model/event.ts';
import {
  type Destination,
  destinationOf,
  PROGRAM_NAMES,
  programOf,
} from '../../model/messages/destination.ts';
import { FORMATS_FOR_PEOPLE, type FormatForPeople } from '../../model/rule.ts';
import { destinationMistake, nameMistake } from '../../model/webhook.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { type Options, oneOf, repeated } from '../options.ts';
import { onTarget, onWorkflow, soleTeam, type Target, type TargetTeam } from '../target.ts';
import { print, say } from '../terminal.ts';
import { eventNames } from './listen.ts';
import { addDigestFlags, addRuleFlags, digestFieldsFrom, ruleFieldsFrom } from './rules.ts';

/** What people want to read of a workflow, if they do not say. Programs receive all events. */
const EVENTS_FOR_PEOPLE = 'workflow_data_change,workflow_failed';
/** The events that say that something is broken. */
const FAILURES = [
  'workflow_failed',
  'workflow_stale',
  'workflow_recovered',
  'webhook_failing',
  'webhook_paused',
];
const NOTICES = 'When something breaks';

/** A webhook to create, without the workflow. */
interface Wanted {
  workflow: string | undefined;
  url: string;
  events: string[];
  fields: WebhookChanges;
}

export function addDestinations(webhooks: Command): void {
  const subscribing = webhooks
    .command('subscribe')
    .description(
      'subscribe a URL, a mail address or a chat to the events of a workflow; repeating the command ends a pause',
    )
    .withExamples(
      'webhooks subscribe people https://example.com/hook --events job.finished,job.failed',
      'webhooks subscribe people --mail ops@example.org --digest 08:00 --time-zone Europe/Zurich',
      'webhooks subscribe --all --slack https://hooks.slack.com/services/…',
      'webhooks subscribe https://example.com/all',
    )
    .usage('[options] [workflow] [url]')
    .argument(
      '[workflow]',
      'id of the workflow; if omitted, all workflows of the team, including future ones',
    )
    .argument('[url]', 'http:// or https:// URL that receives the events')
    .option('--all', 'all workflows of the team, including future ones')
    .option('--mail <address>', 'send mail to this address, once its reader has confirmed it')
    .option(
      '--slack <url>',
      'write to Slack, or to a chat that reads its messages: URL of an incoming webhook',
    )
    .option('--discord <url>', 'write to Discord: URL of a webhook of a channel')
    .option('--teams <url>', 'write to Microsoft Teams: URL of a workflow that posts to a channel')
    .option(
      '--events <names>',
      `events to subscribe to, comma-separated (default: *, all events; for people: ${EVENTS_FOR_PEOPLE})`,
    )
    .withValues('--events', EVENT_TYPES)
    .option(
      '--team <slug>',
      'team of the webhook, if several teams have a workflow with this id or the workflow is omitted',
    );
  addTextFlags(subscribing);
  onTarget(addRuleFlags(subscribing, { removes: false }), subscribe, {
    check: async (first: string | undefined, second: string | undefined, options) =>
      void (await wantedFrom(first, second, options)),
  });

  const notifying = webhooks
    .command('notify')
    .description(
      'write to people when something breaks: a job has failed, a workflow is stale, or a webhook is failing or was paused',
    )
    .withExamples(
      'webhooks notify ops@example.org',
      'webhooks notify https://hooks.slack.com/services/…',
      'webhooks notify https://chat.example.org/hooks/1 --format slack',
    )
    .argument('<destination>', 'mail address, or URL of an incoming webhook of Slack, Discord or Teams')
    .option(
      '--format <format>',
      `how messages are written: ${FORMATS_FOR_PEOPLE.join(', ')} (default: recognized by the URL)`,
    )
    .withValues('--format', FORMATS_FOR_PEOPLE)
    .option('--name <text>', `name of the webhook (default: ${NOTICES})`)
    .option('--team <slug>', 'team whose problems are reported, if there are several');
  onTarget(addDigestFlags(notifying, { removes: false }), notify, {
    check: (destination: string, options) => void noticesFor(destination, options),
  });
}

async function subscribe(
  target: Target,
  first: string | undefined,
  second: string | undefined,
  options: Options,
): Promise<void> {
  const { workflow, url, events, fields } = await wantedFrom(first, second, options);
  if (workflow === undefined) {
    return create(
      await soleTeam(target, 'A subscription without a workflow needs a team'),
      { url, events, ...fields },
      options,
    );
  }
  await onWorkflow(target, workflow, async (team, workflowId) => {
    const isPlain = Object.keys(fields).length === 0 && programOf(url) !== 'mail';
    if (!isPlain) return create(team, { workflowId, url, events, ...fields }, options);
    const { webhookId, message } = await team.client.webhooks.subscribe({ workflowId, url, events });
    print(options, await team.client.webhooks.get(webhookId), [webhookId]);
    say(message);
  });
}

async function notify(target: Target, destination: string, options: Options): Promise<void> {
  const team = await soleTeam(target, 'Problems are those of a team');
  await create(team, noticesFor(destination, options), options);
}

/** The webhook that reports to people what breaks. @throws UsageError */
export function noticesFor(written: string, options: Options): New {
  const { format, name = NOTICES } = options;
  const chosen = format === undefined ? undefined : oneOf('--format', String(format), FORMATS_FOR_PEOPLE);
  const found = destinationOf(written, chosen);
  if ('mistake' in found) {
    const isUnknown = chosen === undefined && found.mistake.endsWith('is not known');
    const advice = isUnknown ? `: add --format slack, discord or teams` : '';
    throw new UsageError(`The destination ${found.mistake}${advice}`);
  }
  const mistake = nameMistake(name);
  if (mistake !== undefined) throw new UsageError(mistake.replace('`name`', '--name'));
  return {
    ...found,
    name: String(name),
    events: FAILURES,
    ...digestFieldsFrom(options, { isForPeople: true }),
  };
}

export type New = Omit<NewWebhook, 'webhookUrl' | 'events'> & { url: string; events: readonly string[] };

/** Creates a webhook, and prints its id and what happens next. */
async function create({ client }: TargetTeam, wanted: New, options: Options): Promise<void> {
  const webhook = await client.webhooks.create(wanted);
  print(options, webhook, [webhook.id]);
  say(webhook.message);
  if (webhook.state === 'active' && (FORMATS_FOR_PEOPLE as readonly string[]).includes(webhook.format)) {
    say(`To see a message: \`flowhook webhooks test ${webhook.id} --wait\``);
  }
  if (wanted.digest != null && 'at' in wanted.digest && options.timeZone === undefined) {
    const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
    say(
      `Digests are sent at ${wanted.digest.at} UTC. To choose another zone: --time-zone ${here === 'UTC' ? 'Europe/Zurich' : here}`,
    );
  }
}

/** @throws UsageError */
async function wantedFrom(
  first: string | undefined,
  second: string | undefined,
  options: Options,
): Promise<Wanted> {
  const destination = destinationFrom(options);
  const { workflow, url } =
    destination === undefined
      ? placesFrom(first, second, options)
      : { workflow: workflowFrom(first, second, options), url: destination.url };
  const format = destination?.format ?? (programOf(url) === 'mail' ? 'mail' : undefined);
  const events = eventNames(
    format === undefined ? options : { ...options, events: options.events ?? EVENTS_FOR_PEOPLE },
  );
  const isForPeople =
    format !== undefined || (FORMATS_FOR_PEOPLE as readonly unknown[]).includes(options.format);
  const fields = await namedFieldsFrom(options, { isForPeople });
  if (destination === undefined) {
    rejectUnreadable(url, fields);
    return { workflow, url, events, fields };
  }
  if (fields.format !== undefined)
    throw new UsageError(
      `--${destination.format} sets the form of the messages: omit --${'template' in fields ? 'template' : 'format'}`,
    );
  return {
    workflow,
    url,
    events,
    fields: { ...fields, ...(format === 'mail' ? {} : { format: destination.format }) },
  };
}

/** The destination that a flag names. @throws UsageError */
function destinationFrom(options: Options): Destination | undefined {
  const given = FORMATS_FOR_PEOPLE.filter((format) => options[format] !== undefined);
  const [format, other] = given;
  if (format === undefined) return undefined;
  if (other !== undefined) {
    throw new UsageError(
      `A webhook has one destination: use --${format} or --${other}, and run the command again for the other`,
    );
  }
  const found = destinationOf(String(options[format]), format);
  if (!('mistake' in found)) return found;
  const program = programMeant(String(options[format]), format);
  throw new UsageError(`--${format} ${found.mistake}${program === undefined ? '' : `. Use --${program}`}`);
}

/** The flag that would have been right for a destination. */
function programMeant(written: string, format: FormatForPeople): FormatForPeople | undefined {
  const right = destinationOf(written);
  return 'mistake' in right || right.format === format ? undefined : right.format;
}

/** The workflow, if a flag names the destination. @throws UsageError */
function workflowFrom(
  first: string | undefined,
  second: string | undefined,
  { all }: Options,
): string | undefined {
  const url = second ?? (first !== undefined && isPlace(first) ? first : undefined);
  if (url !== undefined)
    throw new UsageError(`A webhook has one destination, which a flag names: omit ${url}`);
  return chosenWorkflow(first, all === true);
}

/** The workflow and the URL, if no flag names a destination. @throws UsageError */
function placesFrom(
  first: string | undefined,
  second: string | undefined,
  { all }: Options,
): { workflow: string | undefined; url: string } {
  if (first === undefined) {
    throw new UsageError('The destination is missing: pass a URL, or --mail, --slack, --discord or --teams');
  }
  if (second === undefined && !isPlace(first)) {
    if (first.includes('@')) throw new UsageError(`"${first}" is a mail address: use --mail ${first}`);
    throw new UsageError(
      `The URL is missing: run \`flowhook webhooks subscribe ${first} https://…\`, or pass only a URL for all workflows. ` +
        'To write to people, use --mail, --slack, --discord or --teams',
    );
  }
  const url = second ?? first;
  rejectInvalidUrl(url);
  return { workflow: second === undefined ? undefined : chosenWorkflow(first, all === true), url };
}

function chosenWorkflow(workflow: string | undefined, isAll: boolean): string | undefined {
  if (workflow !== undefined && isAll) {
    throw new UsageError(`--all means all workflows: omit --all, or the workflow ${workflow}`);
  }
  if (workflow !== undefined || isAll) return workflow;
  throw new UsageError('Name a workflow, or pass --all for all workflows of the team');
}

function isPlace(text: string): boolean {
  return text.includes('://') || /^mailto:/i.test(text);
}

/** @throws UsageError if the URL is not valid for a webhook */
export function rejectInvalidUrl(url: string): void {
  const mistake = destinationMistake(url)?.replace('`webhookUrl`', `The URL "${url}"`);
  if (mistake === undefined) return;
  if (url.includes('@') && !url.includes('://') && !/^mailto:/i.test(url))
    throw new UsageError(`"${url}" is a mail address: use --mail ${url}`);
  const whole = `http://${url}`;
  const advice = !isPlace(url) && destinationMistake(whole) === undefined ? `. Did you mean ${whole}?` : '';
  throw new UsageError(mistake + advice);
}

/** Chats refuse the bodies that programs read. @throws UsageError */
function rejectUnreadable(url: string, { format }: WebhookChanges): void {
  const program = programOf(url);
  if (format === 'mail' && program !== 'mail') {
    throw new UsageError(
      'Mail is sent to an address: use --mail ops@example.org instead of the URL and --format',
    );
  }
  if (program === undefined || program === 'mail' || format !== undefined) return;
  throw new UsageError(
    `${PROGRAM_NAMES[program]} reads only its own messages: use --${program} ${url}, or --template for messages of your own`,
  );
}

/** Adds the flags for what people write about a webhook. */
export function addTextFlags(command: Command): void {
  command
    .option('--name <text>', 'name of the webhook')
    .option('--description <text>', 'what the webhook is for')
    .option(
      '--label <label>',
      'word by which the webhook is found, such as customer:acme (repeatable); replaces all labels set before',
      repeated,
    );
}

/** Returns the texts and the rule that the flags set. @throws UsageError */
export async function namedFieldsFrom(
  options: Options,
  { isForPeople }: { isForPeople?: boolean } = {},
): Promise<WebhookChanges> {
  const { name, description, label, labels } = options;
  return {
    ...(name === undefined ? {} : { name: name === false ? null : String(name) }),
    ...(description === undefined ? {} : { description: description === false ? null : String(description) }),
    ...(labels === false ? { labels: [] } : label === undefined ? {} : { labels: label as string[] }),
    ...(await ruleFieldsFrom(options, { isForPeople })),
  };
}
