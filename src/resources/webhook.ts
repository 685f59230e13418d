/** A webhook as callers see it, over HTTP and at the shell. */
import { breakerReason } from '../model/lane.ts';
import { WEBHOOK_STATES, type Webhook } from '../model/webhook.ts';
import { toIso, toIsoOrNull } from '../std/clock.ts';
import { isoTime, isoTimeOrNull } from '../std/shape.ts';
import { headerNames } from '../webhooks/custom-headers.ts';
import type { WebhookDeps } from '../webhooks/deps.ts';

export type ShownWebhook = Awaited<ReturnType<typeof shownWebhook>>;

export async function shownWebhook(deps: Pick<WebhookDeps, 'store' | 'sealer' | 'log'>, webhook: Webhook) {
  return {
    id: webhook.id,
    workflowId: webhook.workflowId,
    createdAt: toIso(webhook.createdAt),
    url: webhook.url,
    events: webhook.events,
    state: webhook.state,
    settings: { ...webhook.settings, headers: await headerNames(deps, webhook) },
    pausedAt: toIsoOrNull(webhook.pausedAt),
    pausedReason: webhook.pausedReason,
    failingSince: toIsoOrNull(webhook.failingSince),
    breaker: await shownBreaker(deps, webhook),
    lastSuccessAt: toIsoOrNull(webhook.lastSuccessAt),
  };
}

/** Why what is due does not go out at once, and when the next attempt does. */
export async function shownBreaker(
  { store }: Pick<WebhookDeps, 'store'>,
  { teamId, id: webhookId, state, failingSince, breaker }: Webhook,
) {
  const reason = breaker === null ? null : breakerReason(breaker, store.now());
  const isHeld = state === 'active' && (reason !== null || failingSince !== null);
  const dueAt = isHeld ? await store.deliveries.firstDueAt({ teamId, webhookId }) : null;
  return {
    state: breaker?.state ?? 'closed',
    since: breaker === null || reason === null ? null : toIso(breaker.since),
    nextAttemptAt: dueAt === null ? null : toIso(Math.max(dueAt, breaker?.until ?? 0)),
    reason,
  };
}

/** The same as JSON Schema. */
export const webhookDetailSchema = {
  type: 'object',
  required: ['id', 'workflowId', 'createdAt', 'url', 'events', 'state', 'breaker'],
  properties: {
    id: { type: 'string' },
    workflowId: { type: ['string', 'null'], description: 'null: every workflow of the team' },
    createdAt: isoTime,
    url: { type: 'string' },
    events: { type: 'array', items: { type: 'string' } },
    state: { enum: WEBHOOK_STATES },
    settings: {
      type: 'object',
      properties: {
        ordered: { type: 'boolean' },
        ratePerSecond: { type: ['number', 'null'], description: 'null: no limit' },
        timeoutMs: { type: 'integer' },
        headers: {
          type: ['array', 'null'],
          items: { type: 'string' },
          description:
            'Their names; never their values. null: they were sealed with another encryption key; set them anew',
        },
      },
    },
    pausedAt: isoTimeOrNull,
    pausedReason: { type: ['string', 'null'] },
    failingSince: { ...isoTimeOrNull, description: 'Since when every attempt has failed' },
    breaker: {
      type: 'object',
      required: ['state', 'since', 'nextAttemptAt', 'reason'],
      description: 'Whether what is due goes out at once. `open`: only one attempt now and then, as a probe',
      properties: {
        state: { enum: ['closed', 'open', 'half_open'] },
        since: { ...isoTimeOrNull, description: 'Since when deliveries are held back; null: they are not' },
        nextAttemptAt: {
          ...isoTimeOrNull,
          description:
            'When the next attempt goes out, while the endpoint fails or is held back; null: nothing waits, or it is ' +
            'paused. A time that has passed: as soon as it can',
        },
        reason: { type: ['string', 'null'], description: 'Why they are held back: a sentence' },
      },
    },
    lastSuccessAt: { ...isoTimeOrNull, description: 'Accurate to a minute' },
  },
};
