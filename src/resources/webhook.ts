/** A webhook, as the API returns it: with the four fields of the contract, or with its settings and state. */
import { breakerReason } from '../model/lane.ts';
import { maskedUrl } from '../model/messages/destination.ts';
import {
  DEFAULT_RULE,
  digestFields,
  durationText,
  FIRST_VERSIONS,
  FORMATS,
  type Rule,
} from '../model/rule.ts';
import { WEBHOOK_STATES, type Webhook } from '../model/webhook.ts';
import {
  boolean,
  choice,
  exactly,
  integer,
  type Json,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  raw,
  text,
  time,
  withExample,
} from '../std/shape.ts';
import { headerNames, type WebhookDeps } from '../webhooks/sealed.ts';
import { ENDED, IDS, QUEUED, RECEIVER } from './examples.ts';

const events = ['workflow_finished', 'workflow_data_change'];

/** Exactly the four keys of the contract, which does not state a format for `createdAt`. */
export const webhookResource = named(
  'Webhook',
  exactly(
    object({
      id: text('Webhook ID'),
      createdAt: { ...time(), schema: text(time().schema.description).schema },
      url: text('Callback URL'),
      events: list(text(), 'Names of the events that the webhook is subscribed to'),
    }),
  ),
  { id: IDS.webhook, createdAt: QUEUED, url: RECEIVER, events },
);

/** A public key with which receivers verify the `v1a` signatures of a team. */
export const signingKeyResource = named(
  'SigningKey',
  object({
    id: text(),
    type: raw<'ed25519'>({ const: 'ed25519' }),
    key: text('`whpk_` followed by the 32 bytes of the public key in base64'),
    createdAt: text('ISO 8601 in UTC with milliseconds'),
  }),
  {
    id: IDS.signingKey,
    type: 'ed25519',
    key: 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
    createdAt: QUEUED,
  },
);

const breaker = object(
  {
    state: choice(
      ['closed', 'open', 'half_open'],
      '`closed`: due deliveries are sent, unless the endpoint asked for a pause (`Retry-After`); `open`: only an occasional probe is sent; `half_open`: a few ' +
        'requests test whether the endpoint has recovered',
    ),
    since: nullable(time('Time since which deliveries have been held back. `null` if they are not')),
    nextAttemptAt: nullable(
      time(
        'Time of the next attempt to a failing endpoint. A time in the past means as soon as possible. `null` if the ' +
          'endpoint is not failing, no delivery is waiting, or the webhook is paused',
      ),
    ),
    reason: nullable(
      text('Human-readable reason why deliveries are held back. `null` if no deliveries are held back'),
    ),
  },
  'Circuit breaker of the endpoint',
);

const detail = object({
  id: text(),
  workflowId: nullable(
    text('ID of the workflow. `null` if the webhook receives the events of every workflow'),
  ),
  createdAt: time(),
  url: text(
    'Callback URL. For a key without the scope `webhooks`, `***` replaces the user, the values of the query, the fragment, ' +
      'and the name before the @ of a mail address, and the path of the URL of a chat is left out',
  ),
  events: list(text()),
  name: nullable(text('Name for people. `null` if there is none')),
  description: nullable(text('Purpose of the webhook, for people. `null` if there is none')),
  labels: list(text(), 'Words by which the list is filtered'),
  filter: nullable(
    text('Expression that decides what is sent (Common Expression Language). `null` if all is sent'),
  ),
  format: choice(FORMATS, 'Form of the body'),
  template: raw<unknown>({
    description:
      'JSON that is sent with the format `template`, before its expressions are replaced. `null` if none; `***` for a key ' +
      'without the scope `webhooks`',
  }),
  firstVersion: choice(FIRST_VERSIONS, 'Whether the first version of a workflow is sent'),
  cooldown: nullable(
    text(
      'Time for which nothing more is sent about a record that was sent, such as `6h`. `null` if there is no limit',
    ),
  ),
  digest: nullable(
    object(
      {
        every: optional(text('Length of a digest, such as `1h`, from its first match')),
        at: optional(text('Time of day when digests are sent, such as `08:00`')),
        timeZone: optional(text('IANA name of the time zone of `at`')),
      },
      'Time at which everything that matches is sent in one message: `every` or `at`. `null` if it is sent immediately',
    ),
  ),
  timeZone: nullable(
    text('IANA name of the zone of times in messages for people. `null` for the zone of the digest, or UTC'),
  ),
  filterMistake: nullable(
    object(
      {
        at: time(),
        eventId: text(),
        recordId: nullable(text('ID of the record. `null` if the filter reads no records')),
        message: text(),
      },
      'Last time that the filter or the template could not be evaluated, which counts as no match. `null` if it ' +
        'always could',
    ),
  ),
  state: choice(WEBHOOK_STATES),
  settings: object({
    ordered: boolean('`true` to send one delivery at a time, in the order of the events'),
    ratePerSecond: nullable(number('Maximum number of requests per second. `null` if unlimited')),
    timeoutMs: integer('Time limit of one attempt, in milliseconds'),
    headers: nullable(
      list(
        text(),
        'Names of the custom headers; their values are never shown. `null` if the headers were encrypted ' +
          'with another encryption key and must be set again',
      ),
    ),
  }),
  pausedAt: nullable(time('Time when the webhook was paused. `null` if it is active')),
  pausedReason: nullable(text('Reason for the pause. `null` if the webhook is active')),
  failingSince: nullable(
    time('Time since which every attempt has failed. `null` if the last one succeeded, or there was none'),
  ),
  breaker,
  lastSuccessAt: nullable(
    time('Time of the last successful delivery, accurate to one minute. `null` if there is none'),
  ),
  verifiedAt: nullable(
    time(
      'Time when the recipient confirmed the address. `null` if that is pending, or the webhook sends no mail',
    ),
  ),
});

const detailExample = {
  id: IDS.webhook,
  workflowId: IDS.workflow,
  createdAt: QUEUED,
  url: RECEIVER,
  events,
  name: 'Cheaper by 5 %',
  description: 'Lower prices, for the shop of Acme',
  labels: ['customer:acme'],
  filter: 'fallsBy(previous.price, record.price, "5%")',
  format: 'standard',
  template: null,
  firstVersion: 'skip',
  cooldown: '6h',
  digest: null,
  timeZone: null,
  filterMistake: null,
  state: 'active',
  settings: { ordered: false, ratePerSecond: null, timeoutMs: 15_000, headers: [] },
  pausedAt: null,
  pausedReason: null,
  failingSince: null,
  breaker: { state: 'closed', since: null, nextAttemptAt: null, reason: null },
  lastSuccessAt: ENDED,
  verifiedAt: null,
} satisfies Json<typeof detail>;

export const webhookDetailResource = named('WebhookDetail', detail, detailExample);

/** What the call that creates a webhook returns. */
export const createdWebhookResource = withExample(
  object({ ...detail.fields, message: text('Result of the call, and what may prevent deliveries') }),
  { ...detailExample, message: `Subscribed: webhook ${IDS.webhook}.` },
);

export async function shownWebhook(deps: Pick<WebhookDeps, 'store' | 'sealer' | 'log'>, of: Webhook) {
  const settings = { ...of.settings, headers: await headerNames(deps, of) };
  return webhookDetailResource.of({
    ...of,
    ...(await ruleFields(of.rule ?? DEFAULT_RULE)),
    filterMistake: of.ruleMistake,
    settings,
    breaker: await breakerOf(deps, of),
  });
}

/** The webhook as callers see it who may read, but not manage webhooks: its URL and its template may contain secrets. */
export async function maskedWebhook(deps: Parameters<typeof shownWebhook>[0], of: Webhook) {
  const shown = await shownWebhook(deps, of);
  return {
    ...shown,
    url: maskedUrl(of.url, of.rule),
    template: shown.template === null ? null : HIDDEN_TEMPLATE,
  };
}

const HIDDEN_TEMPLATE = '***';

/** A rule in the form of the API, with `firstVersion` as it takes effect. */
async function ruleFields(rule: Rule) {
  const { filter, format, template, cooldownMs, digest, timeZone } = rule;
  return {
    filter,
    format,
    template,
    firstVersion: await firstVersionOf(rule),
    cooldown: cooldownMs === null ? null : durationText(cooldownMs),
    digest: digest === null ? null : digestFields(digest),
    timeZone,
  };
}

/** Compiles the filter only if nothing was chosen. */
async function firstVersionOf(rule: Rule): Promise<'send' | 'skip'> {
  if (rule.filter === null) return 'send';
  if (rule.firstVersion !== null) return rule.firstVersion;
  return (await import('../model/rule-fields.ts')).effectiveFirstVersion(rule);
}

/** Why deliveries are held back, and when the next attempt is due. */
export async function shownBreaker(deps: Pick<WebhookDeps, 'store'>, of: Webhook) {
  return breaker.of(await breakerOf(deps, of));
}

async function breakerOf(
  { store }: Pick<WebhookDeps, 'store'>,
  { teamId, id: webhookId, state, failingSince, breaker }: Webhook,
) {
  const reason = breaker === null ? null : breakerReason(breaker, store.now());
  const isHeld = state === 'active' && (reason !== null || failingSince !== null);
  const dueAt = isHeld ? await store.deliveries.firstDueAt({ teamId, webhookId }) : null;
  return {
    state: breaker?.state ?? ('closed' as const),
    since: breaker === null || reason === null ? null : breaker.since,
    nextAttemptAt: dueAt === null ? null : Math.max(dueAt, breaker?.until ?? 0),
    reason,
  };
}
