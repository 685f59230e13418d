/** Changes the settings and custom headers of a webhook; each field is validated. */
import { Problem } from '../model/error.ts';
import type { Webhook, WebhookSettings } from '../model/webhook.ts';
import { headersMistake, sealHeaders } from './custom-headers.ts';
import type { WebhookDeps } from './deps.ts';

export const MIN_RATE = 0.01;
export const MAX_RATE = 1_000;
export const MIN_TIMEOUT_MS = 1_000;
export const MAX_TIMEOUT_MS = 30_000;

const FIELDS = ['ordered', 'ratePerSecond', 'timeoutMs', 'headers'];

/** Fields that are missing stay unchanged; `headers: null` removes the custom headers. */
export interface WebhookChanges extends Partial<WebhookSettings> {
  headers?: Record<string, string> | null;
}

/** @throws Problem `field_invalid`, whose sentence names the first invalid field and its valid values */
export function changesFrom(fields: Record<string, unknown>): WebhookChanges {
  const mistake = changesMistake(fields);
  if (mistake !== undefined) throw new Problem('field_invalid', { sentence: mistake });
  return fields as WebhookChanges;
}

/**
 * @param input.expected the state that the webhook must still have, or nothing is changed
 * @throws Problem `webhook_not_found`; `precondition_failed`
 */
export async function changeWebhook(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  input: {
    teamId: string;
    id: string;
    changes: WebhookChanges;
    expected?: { settings: WebhookSettings; headers: string | null } | undefined;
  },
): Promise<Webhook> {
  const { teamId, id, expected } = input;
  const { headers, ...settings } = input.changes;
  const none = headers === null || (headers !== undefined && Object.keys(headers).length === 0);
  const webhook = await deps.store.webhooks.change({
    teamId,
    id,
    ...(expected === undefined ? {} : { expected }),
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(headers === undefined
      ? {}
      : { headers: none ? null : sealHeaders(deps.sealer, teamId, headers as Record<string, string>) }),
  });
  if (webhook !== undefined) return webhook;
  const isThere = expected !== undefined && (await deps.store.webhooks.get({ teamId, id })) !== undefined;
  throw new Problem(isThere ? 'precondition_failed' : 'webhook_not_found');
}

function changesMistake(fields: Record<string, unknown>): string | undefined {
  const names = Object.keys(fields);
  if (names.length === 0) return `Name at least one of ${FIELDS.join(', ')}`;
  const { ordered, ratePerSecond, timeoutMs, headers } = fields;
  if (ordered !== undefined && typeof ordered !== 'boolean') return '`ordered` must be true or false';
  if (ratePerSecond !== undefined && ratePerSecond !== null && !isWithin(ratePerSecond, MIN_RATE, MAX_RATE)) {
    return `\`ratePerSecond\` must be a number from ${MIN_RATE} to ${MAX_RATE}, or null for no limit`;
  }
  const isTimeout = isWithin(timeoutMs, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS) && Number.isInteger(timeoutMs);
  if (timeoutMs !== undefined && !isTimeout) {
    return `\`timeoutMs\` must be a whole number of milliseconds from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`;
  }
  return headers === undefined || headers === null ? undefined : headersMistake(headers);
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}
