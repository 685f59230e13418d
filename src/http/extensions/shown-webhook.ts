/** A webhook as callers see it, over HTTP and at the shell. */
import type { Webhook } from '../../model/webhook.ts';
import { toIso } from '../../std/clock.ts';
import { headerNames } from '../../webhooks/change.ts';
import type { WebhookDeps } from '../../webhooks/deps.ts';

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
    pausedAt: isoOrNull(webhook.pausedAt),
    pausedReason: webhook.pausedReason,
    failingSince: isoOrNull(webhook.failingSince),
    lastSuccessAt: isoOrNull(webhook.lastSuccessAt),
  };
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}
