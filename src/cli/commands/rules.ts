/** `flowhook webhooks try|decisions`, and the flags with which other commands set the rule of a webhook. */
import type {
  Flowhook,
  TryWebhookRequest,
  TryWebhookResult,
  WebhookChanges,
  WebhookDetail,
} from '../../../client/src/flowhook-client.ts';
import { digestMistake } from '../../model/digest.ts';
import { FIRST_VERSIONS, FORMATS } from '../../model/rule.ts';
import { timeZoneMistake } from '../../model/schedule.ts';
import { countWords, parseDuration } from '../../std/amounts.ts';
import { DECISION_STATES } from '../../store/operations/rules/decisions.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { jsonFrom, type Options, oneOf, someOf, wholeNumber } from '../options.ts';
import { onTarget, onWebhook, onWorkflow, soleTeam, type Target } from '../target.ts';
import { type Head, print, say, table } from '../terminal.ts';
import { eventNames } from './listen.ts';

const DEFAULT_LAST = 20;
const MAX_LAST = 50;
const DEFAULT_DECISIONS = 20;
const MAX_DECISIONS = 1_000;
const CHOICES = [...FIRST_VERSIONS, 'default'] as const;

/** Adds the flags that `ruleFrom` reads. @param removes whether there are also flags that remove a part of the rule */
export function addRuleFlags(command: Command, { removes }: { removes: boolean }): Command {
  const none = (flag: string, what: string) => (removes ? command.option(flag, what) : command);
  command.option(
    '--filter <expression>',
    'send only what matches, such as \'fallsBy(previous.price, record.price, "5%")\'',
  );
  none('--no-filter', 'send everything');
  command
    .option('--format <format>', `form of the body: ${FORMATS.join(', ')}`)
    .withValues('--format', FORMATS)
    .option('--template <file>', `JSON file for the body; \${…} in its strings holds expressions`);
  none('--no-template', 'send the standard body again');
  command
    .option(
      '--first-version <choice>',
      'send or skip the first version of a workflow (default: skip if the filter reads records)',
    )
    .withValues('--first-version', CHOICES)
    .option(
      '--cooldown <duration>',
      'after a record was sent, send nothing about it for this long, such as 6h',
    );
  none('--no-cooldown', 'send a record as often as it matches');
  return addDigestFlags(command, { removes });
}

/** Adds the flags that `digestFieldsFrom` reads. */
export function addDigestFlags(command: Command, { removes }: { removes: boolean }): Command {
  const none = (flag: string, what: string) => (removes ? command.option(flag, what) : command);
  command.option(
    '--digest <when>',
    'gather what matches and send it in one message: after a period such as 1h, or each day at a time such as 08:00',
  );
  none('--no-digest', 'send everything immediately');
  command.option(
    '--time-zone <name>',
    'zone of the time of --digest, otherwise of the times in messages for people (default: UTC)',
  );
  return none('--no-time-zone', 'write times in messages in the zone of the digest, or UTC');
}

/**
 * The fields that the flags of `addDigestFlags` set.
 *
 * @param isForPeople false if the webhook sends no messages for people; undefined if that is unknown
 * @throws UsageError
 */
export function digestFieldsFrom(
  { digest, timeZone }: Options,
  { isForPeople }: { isForPeople?: boolean | undefined } = {},
): Pick<WebhookChanges, 'digest' | 'timeZone'> {
  const zone = typeof timeZone === 'string' ? timeZone : undefined;
  const mistake = zone === undefined ? undefined : timeZoneMistake(zone);
  if (mistake !== undefined) throw new UsageError(`--time-zone ${mistake}`);
  const gathering =
    digest === undefined ? undefined : digest === false ? null : digestFrom(String(digest), zone);
  const isOfDigest = gathering != null && 'at' in gathering;
  if (zone !== undefined && isForPeople === false && !isOfDigest) {
    throw new UsageError(
      '--time-zone needs a time of day such as --digest 08:00, or messages for people (--mail, --slack, --discord, --teams)',
    );
  }
  return {
    ...(gathering === undefined ? {} : { digest: gathering }),
    ...(timeZone === false ? { timeZone: null } : {}),
    ...(zone === undefined || isOfDigest ? {} : { timeZone: zone }),
  };
}

/** @throws UsageError */
function digestFrom(when: string, timeZone = 'UTC'): NonNullable<WebhookChanges['digest']> {
  const at = { at: when, timeZone };
  if (digestMistake(at) === undefined) return at;
  if (digestMistake({ everyMs: parseDuration(when) ?? Number.NaN }) === undefined) return { every: when };
  const padded = `0${when}`;
  const meant =
    digestMistake({ at: padded, timeZone: 'UTC' }) === undefined ? `. Did you mean ${padded}?` : '';
  throw new UsageError(
    `--digest must be a period from 1m to 7d such as 1h, or a time of day such as 08:00, found "${when}"${meant}`,
  );
}

/** A digest as the flag sets it: `1h`, or `08:00 Europe/Zurich`; null if there is none. */
export function digestWords(digest: WebhookDetail['digest']): string | null {
  return digest === null ? null : (digest.every ?? `${digest.at} ${digest.timeZone}`);
}

/** The fields that the flags of `addRuleFlags` set. @param of see `digestFieldsFrom` @throws UsageError */
export async function ruleFieldsFrom(
  options: Options,
  of: { isForPeople?: boolean | undefined } = {},
): Promise<WebhookChanges> {
  const { filter, format, template, firstVersion, cooldown, digest } = options;
  if (typeof cooldown === 'string' && typeof digest === 'string') {
    throw new UsageError('A digest already gathers what happens to a record: omit --cooldown, or --digest');
  }
  const choice =
    firstVersion === undefined ? undefined : oneOf('--first-version', String(firstVersion), CHOICES);
  return {
    ...(filter === undefined ? {} : { filter: filter === false ? null : String(filter) }),
    ...(template === false ? { format: 'standard', template: null } : {}),
    ...(typeof template === 'string'
      ? { format: 'template', template: await jsonFrom('--template', template) }
      : {}),
    ...(format === undefined ? {} : { format: oneOf('--format', String(format), FORMATS) }),
    ...(choice === undefined ? {} : { firstVersion: choice === 'default' ? null : choice }),
    ...(cooldown === undefined ? {} : { cooldown: cooldown === false ? null : String(cooldown) }),
    ...digestFieldsFrom(options, of),
  };
}

export function addRules(webhooks: Command): void {
  const trying = webhooks
    .command('try')
    .description(
      'show what a filter and a form would have sent of the last events, without sending or saving',
    )
    .withExamples(
      `webhooks try --workflow people --filter 'record.age > 36'`,
      'webhooks try WEBHOOK --cooldown 6h --last 50',
    )
    .argument('[webhook]', 'id or URL of a webhook, whose rule is tried with the changes that the flags make')
    .option('--workflow <id>', 'only events of this workflow (default: all workflows of the team)')
    .option('--events <names>', 'only these events, comma-separated (default: *, all events)')
    .option('--last <number>', `number of events to try, up to ${MAX_LAST} (default: ${DEFAULT_LAST})`)
    .option('--body', 'also print the bodies that would be sent')
    .option('--team <slug>', 'team, if there are several');
  onTarget(addRuleFlags(trying, { removes: true }), tryRule, {
    check: async (webhook: string | undefined, options) => {
      lastFrom(options);
      eventNames(options);
      await ruleFieldsFrom(options);
      if (webhook === undefined || options.workflow === undefined) return;
      throw new UsageError('A webhook has its own workflow: omit --workflow, or the webhook');
    },
  });

  const decisions = webhooks
    .command('decisions')
    .description('list what the rule of a webhook decided about events, newest first')
    .withExamples('webhooks decisions WEBHOOK --state filtered')
    .argument('<webhook>', 'id or URL of the webhook')
    .option('--state <states>', `only these decisions: comma-separated, of ${DECISION_STATES.join(', ')}`)
    .withValues('--state', DECISION_STATES)
    .option('--limit <number>', `maximum number, up to ${MAX_DECISIONS} (default: ${DEFAULT_DECISIONS})`);
  onTarget(decisions, listDecisions, { check: (_webhook: string, options) => void decisionsFrom(options) });
}

async function tryRule(target: Target, webhook: string | undefined, options: Options): Promise<void> {
  const given = {
    ...(await ruleFieldsFrom(options)),
    ...(options.events === undefined ? {} : { events: eventNames(options) }),
    last: lastFrom(options),
  };
  const ask = async (client: Flowhook, fields: TryWebhookRequest) =>
    printTried(await client.webhooks.try({ ...fields, ...given }), options);
  if (webhook !== undefined) {
    return onWebhook(target, webhook, async ({ client }, id) => {
      const { workflowId, events, filter, format, template, firstVersion, cooldown, digest, timeZone } =
        await client.webhooks.get(id);
      const rule = { filter, format, template, firstVersion, cooldown, digest, timeZone };
      return ask(client, { workflowId, events, ...rule });
    });
  }
  if (options.workflow === undefined) {
    return ask((await soleTeam(target, 'Events belong to a team')).client, {});
  }
  return onWorkflow(target, String(options.workflow), ({ client }, workflowId) =>
    ask(client, { workflowId }),
  );
}

const TRIED_HEADS: readonly Head[] = [
  { name: 'event' },
  { name: 'time' },
  { name: 'matched', drop: 1 },
  { name: 'result' },
];

function printTried({ tried, mistake }: TryWebhookResult, options: Options): void {
  if (mistake !== null) throw new UsageError(mistake.message);
  const rows = tried.map(({ type, timestamp, matched, examined, sent, reason, mistake }) => [
    type,
    timestamp,
    examined === null ? '-' : `${matched} of ${examined}`,
    resultWords({ sent, reason, mistake }),
  ]);
  const bodies = options.body === true ? tried.flatMap(({ body }) => (body === null ? [] : ['', body])) : [];
  print(options, tried, [...table(rows, process.stdout.columns, TRIED_HEADS), ...bodies]);
  if (options.json === true) return;
  const sent = tried.filter((one) => one.sent).length;
  say(
    tried.length === 0
      ? 'No events found to try the rule with: run the workflow first'
      : `${sent} of ${countWords(tried.length, 'event')} would have been sent`,
  );
}

function resultWords({ sent, reason, mistake }: Pick<Tried, 'sent' | 'reason' | 'mistake'>): string {
  const words = [sent ? 'sent' : (reason ?? 'not sent'), mistake?.message].filter(Boolean);
  return oneLine(words.join('. '), 200);
}

type Tried = TryWebhookResult['tried'][number];

const DECISION_HEADS: readonly Head[] = [
  { name: 'event' },
  { name: 'type' },
  { name: 'time' },
  { name: 'state' },
  { name: 'matched', drop: 1 },
  { name: 'reason or delivery' },
];

async function listDecisions(target: Target, webhook: string, options: Options): Promise<void> {
  const { limit, state } = decisionsFrom(options);
  const found = await onWebhook(target, webhook, ({ client }, id) =>
    client.webhooks.decisions(id, { state, limit }).take(limit),
  );
  const rows = found.map((one) => [
    one.eventId,
    one.eventType,
    one.createdAt,
    one.state,
    one.examined === null ? '-' : `${one.matched} of ${one.examined}`,
    one.deliveryId ?? oneLine(one.reason ?? '', 200),
  ]);
  print(options, found, table(rows, process.stdout.columns, DECISION_HEADS));
  if (found.length > 0 || options.json === true) return;
  say('No decisions found. A webhook without a rule has none: every event is sent');
}

/** @throws UsageError */
function lastFrom({ last }: Options): number {
  return wholeNumber('--last', last ?? DEFAULT_LAST, 1, MAX_LAST);
}

/** @throws UsageError */
function decisionsFrom({ limit, state }: Options) {
  return {
    limit: wholeNumber('--limit', limit ?? DEFAULT_DECISIONS, 1, MAX_DECISIONS),
    state: someOf('--state', state, DECISION_STATES),
  };
}
