/** Subscribes webhooks. `change-webhook.ts` changes them. */

import { Problem } from '../model/error.ts';
import { canonicalEvents, eventNameMistake } from '../model/event.ts';
import { isMailUrl } from '../model/messages/mail-address.ts';
import type { Rule } from '../model/rule.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type Webhook, type WebhookSettings } from '../model/webhook.ts';
import { settingsOf } from './change-webhook.ts';
import { addressWarning, verificationWords } from './destination-words.ts';
import { storedDestination } from './mail/verification.ts';
import { newSealedSecret, type WebhookDeps } from './sealed.ts';

const MAX_NAMED_EVENTS = 10;

/**
 * Subscribes a webhook, or returns the existing webhook with the same workflow, URL, set of events and filter. If
 * `workflowId` is null, the webhook receives the events of all workflows of the team. `settings`, `name`, `description`,
 * `labels` and the rest of `rule` apply only to a new webhook. `url` and `events` must be valid (`model/webhook.ts`).
 *
 * @returns the webhook, and a message with its id, with warnings about unknown event names, with a warning if the
 *   address policy will reject the URL, and for a `mailto:` URL with what happened to the verification mail
 * @throws Problem `workflow_not_found`, `webhook_limit`; for a `mailto:` URL `mail_unavailable`, `field_invalid`
 */
export async function subscribeWebhook(
  deps: WebhookDeps,
  input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    settings?: Partial<WebhookSettings>;
    name?: string | null;
    description?: string | null;
    labels?: readonly string[];
    rule?: Rule | null;
  },
): Promise<{ webhook: Webhook; message: string }> {
  const url = await storedDestination(deps, input.url);
  const result = await deps.store.webhooks.subscribe({
    ...input,
    url,
    settings: { ...DEFAULT_WEBHOOK_SETTINGS, ...settingsOf(input.settings ?? {}) },
    secret: newSealedSecret(deps.sealer, input.teamId),
    limit: deps.limit,
  });
  if (result.outcome === 'workflow_not_found') throw new Problem('workflow_not_found');
  if (result.outcome === 'limit_reached') {
    throw new Problem('webhook_limit', {
      sentence:
        `${input.workflowId === null ? 'The team has reached its limit of webhooks for all workflows' : 'This workflow has reached its limit of webhooks'} ` +
        `(${deps.limit}). Unsubscribe one first, or raise the setting FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW`,
    });
  }
  const { webhook } = result;
  const sentences = [
    result.outcome === 'created'
      ? `Subscribed: webhook ${webhook.id}.`
      : `Already subscribed: webhook ${webhook.id} has the same workflow, URL and events, and is ${webhook.state}.`,
    eventsWarning(input.events),
    ...(isMailUrl(url)
      ? await verificationWords(deps, webhook, { isNew: result.outcome === 'created' })
      : [await addressWarning(deps, url, input.teamId)]),
  ];
  return { webhook, message: sentences.filter((sentence) => sentence !== '').join(' ') };
}

function eventsWarning(events: readonly string[]): string {
  const { known, unknown } = canonicalEvents([...new Set(events)]);
  if (unknown.length === 0) return '';
  const named = unknown.slice(0, MAX_NAMED_EVENTS).map((name) => sentence(eventNameMistake(name) ?? ''));
  const more = unknown.length - named.length;
  return [
    ...named,
    ...(more > 0 ? [`${more} more names never fire here.`] : []),
    ...(known.length === 0 ? ['Nothing will be sent.'] : []),
  ].join(' ');
}

function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`;
}
