/** A webhook as callers see it, over HTTP and at the shell. */
import { WEBHOOK_STATES, type Webhook } from '../../model/webhook.ts';
import { toIso, toIsoOrNull } from '../../std/clock.ts';
import { headerNames } from '../../webhooks/custom-headers.ts';
import type { WebhookDeps } from '../../webhooks/deps.ts';
import { isoTime, isoTimeOrNull } from '../openapi/content.ts';

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
    lastSuccessAt: toIsoOrNull(webhook.lastSuccessAt),
  };
}

/** The same as JSON Schema. */
export const webhookDetailSchema = {
  type: 'object',
  required: ['id', 'workflowId', 'createdAt', 'url', 'events', 'state'],
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
    lastSuccessAt: { ...isoTimeOrNull, description: 'Accurate to a minute' },
  },
};
