/** Subscribes a webhook, and composes the message that tells its owner about problems. */
import { Problem } from '../model/error.ts';
import { canonicalEvents, eventNameMistake } from '../model/event.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type Webhook, type WebhookSettings } from '../model/webhook.ts';
import { addressWarning } from './address-warning.ts';
import type { WebhookDeps } from './deps.ts';
import { newSealedSecret } from './secret.ts';

const MAX_NAMED_EVENTS = 10;

/**
 * Subscribes, or returns the existing webhook with the same workflow, URL and set of events. With `workflowId` null it
 * receives the events of all workflows of the team. `settings` apply only to a new webhook. `url` and `events` must be
 * valid (`model/webhook.ts`).
 *
 * @returns the webhook, and a message with its id, a warning for event names that do not exist, and a warning when the
 *   address policy will refuse the URL
 * @throws Problem `workflow_not_found`, `webhook_limit`
 */
export async function subscribeWebhook(
  deps: WebhookDeps,
  input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    settings?: Partial<WebhookSettings>;
  },
): Promise<{ webhook: Webhook; message: string }> {
  const result = await deps.store.webhooks.subscribe({
    ...input,
    settings: { ...DEFAULT_WEBHOOK_SETTINGS, ...input.settings },
    secret: newSealedSecret(deps.sealer, input.teamId),
    limit: deps.limit,
  });
  if (result.outcome === 'workflow_not_found') throw new Problem('workflow_not_found');
  if (result.outcome === 'limit_reached') {
    throw new Problem('webhook_limit', {
      sentence:
        `${input.workflowId === null ? 'The team has as many webhooks for all its workflows' : 'This workflow has as many webhooks'} ` +
        `as it may have (${deps.limit}). Unsubscribe one first, or raise ` +
        'the setting FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW',
    });
  }
  const { webhook } = result;
  const sentences = [
    result.outcome === 'created'
      ? `Subscribed: webhook ${webhook.id}.`
      : `Already subscribed: webhook ${webhook.id} has the same workflow, URL and events, and is active.`,
    eventsWarning(input.events),
    await addressWarning(deps, input.url, input.teamId),
  ];
  return { webhook, message: sentences.filter((sentence) => sentence !== '').join(' ') };
}

function eventsWarning(events: readonly string[]): string {
  const { known, unknown } = canonicalEvents([...new Set(events)]);
  if (unknown.length === 0) return '';
  const told = unknown.slice(0, MAX_NAMED_EVENTS).map((name) => sentence(eventNameMistake(name) ?? ''));
  const more = unknown.length - told.length;
  return [
    ...told,
    ...(more > 0 ? [`${more} more names never fire here.`] : []),
    ...(known.length === 0 ? ['Nothing will be sent.'] : []),
  ].join(' ');
}

function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`;
}
