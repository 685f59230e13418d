/** A webhook as callers see it: the four fields of the contract, or with its settings and how it stands. */
import { breakerReason } from '../model/lane.ts';
import { WEBHOOK_STATES, type Webhook } from '../model/webhook.ts';
import {
  boolean,
  choice,
  exactly,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  text,
  time,
} from '../std/shape.ts';
import { headerNames, type WebhookDeps } from '../webhooks/sealed.ts';
import { ENDED, IDS, QUEUED, RECEIVER } from './examples.ts';

const events = ['workflow_finished', 'workflow_data_change'];

/** Exactly the four keys of the contract, which states no format of the time. */
export const webhookResource = named(
  'Webhook',
  exactly(
    object({
      id: text('Webhook identifier'),
      createdAt: { ...time(), schema: text(time().schema.description).schema },
      url: text('Callback URL'),
      events: list(text(), 'The events subscribed to'),
    }),
  ),
  { id: IDS.webhook, createdAt: QUEUED, url: RECEIVER, events },
);

const breaker = object(
  {
    state: choice(['closed', 'open', 'half_open']),
    since: nullable(time('Since when deliveries are held back; null: they are not')),
    nextAttemptAt: nullable(
      time(
        'When the next attempt goes out, while the endpoint fails or is held back; null: nothing waits, or it is ' +
          'paused. A time that has passed: as soon as it can',
      ),
    ),
    reason: nullable(text('Why they are held back: a sentence')),
  },
  'Whether what is due goes out at once. `open`: only one attempt now and then, as a probe',
);

export const webhookDetailResource = named(
  'WebhookDetail',
  object({
    id: text(),
    workflowId: nullable(text('null: every workflow of the team')),
    createdAt: time(),
    url: text(),
    events: list(text()),
    state: choice(WEBHOOK_STATES),
    settings: object({
      ordered: boolean(),
      ratePerSecond: nullable(number('null: no limit')),
      timeoutMs: integer(),
      headers: nullable(
        list(
          text(),
          'Their names; never their values. null: they were sealed with another encryption key; set them anew',
        ),
      ),
    }),
    pausedAt: nullable(time()),
    pausedReason: nullable(text()),
    failingSince: nullable(time('Since when every attempt has failed')),
    breaker,
    lastSuccessAt: nullable(time('Accurate to a minute')),
  }),
  {
    id: IDS.webhook,
    workflowId: IDS.workflow,
    createdAt: QUEUED,
    url: RECEIVER,
    events,
    state: 'active',
    settings: { ordered: false, ratePerSecond: null, timeoutMs: 15_000, headers: [] },
    pausedAt: null,
    pausedReason: null,
    failingSince: null,
    breaker: { state: 'closed', since: null, nextAttemptAt: null, reason: null },
    lastSuccessAt: ENDED,
  },
);

export async function shownWebhook(deps: Pick<WebhookDeps, 'store' | 'sealer' | 'log'>, of: Webhook) {
  const settings = { ...of.settings, headers: await headerNames(deps, of) };
  return webhookDetailResource.of({ ...of, settings, breaker: await breakerOf(deps, of) });
}

/** Why what is due does not go out at once, and when the next attempt does. */
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
