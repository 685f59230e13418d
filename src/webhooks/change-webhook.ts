/** Changes the destinations, events, texts, rules, settings and headers of webhooks, and rotates their secrets. */

import { Problem } from '../model/error.ts';
import { isMailUrl } from '../model/messages/mail-address.ts';
import { DEFAULT_RULE, hasRule, RULE_FIELDS, type Rule, type RuleField } from '../model/rule.ts';
import {
  DEFAULT_WEBHOOK_SETTINGS,
  descriptionMistake,
  destinationMistake,
  knownEventsMistake,
  labelsMistake,
  nameMistake,
  UNVERIFIED,
  type Webhook,
  type WebhookSettings,
} from '../model/webhook.ts';
import type { ChangedWebhook, ExpectedWebhook } from '../store/operations/webhooks/change.ts';
import { addressWarning, verificationWords } from './destination-words.ts';
import { storedDestination } from './mail/verification.ts';
import { headersMistake, newSealedSecret, sealHeaders, type WebhookDeps, webhookSecret } from './sealed.ts';

export const MIN_RATE = 0.01;
export const MAX_RATE = 1_000;
export const MIN_TIMEOUT_MS = 1_000;
export const MAX_TIMEOUT_MS = 30_000;

const SETTINGS = ['ordered', 'ratePerSecond', 'timeoutMs', 'headers'] as const;
const FIELDS = [
  ...SETTINGS,
  ...['url', 'events', 'rotateSecret', 'description', 'labels', 'name'],
  ...RULE_FIELDS,
];

/** The fields of a rule in the form of the API. Missing fields stay unchanged; null restores the default. */
export type RuleFields = { [Field in RuleField]?: unknown };

/** Changes to a webhook. Missing fields stay unchanged; `headers: null` removes the custom headers. */
export interface WebhookChanges extends Partial<WebhookSettings>, RuleFields {
  headers?: Record<string, string> | null;
  name?: string | null;
  description?: string | null;
  labels?: string[];
  url?: string;
  events?: string[];
  /** Replaces the secret immediately, so that nothing is signed with the old one any more. */
  rotateSecret?: boolean;
}

/**
 * Validates the changes, except for the fields of the rule, which `changeWebhook` checks together with those that stay.
 *
 * @throws Problem `field_invalid`, with the first invalid field and the values that it accepts
 */
export function changesFrom(fields: Record<string, unknown>): WebhookChanges {
  const mistake = changesMistake(fields);
  if (mistake !== undefined) throw new Problem('field_invalid', { sentence: mistake });
  return fields as WebhookChanges;
}

/** The fields of a rule among others; empty if there are none. */
export function ruleFieldsOf(fields: object): RuleFields {
  const given = Object.entries(fields).filter(([name]) => (RULE_FIELDS as readonly string[]).includes(name));
  return Object.fromEntries(given);
}

/**
 * The rule of a new webhook; null if it has none. Ignores other fields.
 *
 * @throws Problem `field_invalid`, also for headers that the URL cannot have
 */
export async function newRule(url: string, fields: WebhookChanges): Promise<Rule | null> {
  refuseHeaders(url, fields);
  const given = ruleFieldsOf(fields);
  if (Object.keys(given).length === 0 && !isMailUrl(url)) return null;
  const { ruleFrom } = await import('../model/rule-fields.ts');
  return orNull(ruleFrom({ ...given }, DEFAULT_RULE, url));
}

/** @throws Problem `field_invalid` */
function refuseHeaders(url: string, { headers }: WebhookChanges): void {
  if (headers == null || Object.keys(headers).length === 0 || !isMailUrl(url)) return;
  throw new Problem('field_invalid', {
    sentence: '`headers` are sent with HTTP requests; a webhook that sends mail has none: omit them',
  });
}

/** How often a change is tried again because another call has just changed what it depends on. */
const MOST_TRIES = 10;

/**
 * Changes a webhook. A new `url` is a new destination: waiting deliveries go there, and its health is not known. The secret
 * stays, and so do custom headers, unless the new URL has another origin: then they must be given again or removed.
 *
 * @param input.expected the state that the caller has read: if the webhook has changed since, nothing is changed
 * @throws Problem `webhook_not_found`; `precondition_failed`; `webhook_exists`; `field_invalid` for a rule that is not
 *   valid as a whole, or for headers that the URL cannot have; for a `mailto:` URL `mail_unavailable`
 */
export async function changeWebhook(
  deps: Pick<WebhookDeps, 'store' | 'sealer' | 'mailing'>,
  input: { teamId: string; id: string; changes: WebhookChanges; expected?: ExpectedWebhook | undefined },
): Promise<ChangedWebhook> {
  const { teamId, id, expected } = input;
  const { webhooks } = deps.store;
  const { changes } = input;
  const ruleFields = ruleFieldsOf(changes);
  const url = changes.url === undefined ? undefined : await storedDestination(deps, changes.url, 'url');
  const hasNewRule = url !== undefined || Object.keys(ruleFields).length > 0;
  const stored = { ...storedChanges(deps, teamId, changes), ...(url !== undefined && { url }) };
  for (let tries = 0; tries < (expected === undefined ? MOST_TRIES : 1); tries += 1) {
    const before = await webhooks.get({ teamId, id });
    if (before === undefined) throw new Problem('webhook_not_found');
    refuseHeaders(url ?? before.url, changes);
    refuseOtherTransport(before.url, url);
    const keepsHeaders = url !== undefined && changes.headers === undefined;
    const webhook = await webhooks.change({
      teamId,
      id,
      ...stored,
      ...(hasNewRule && { rule: await changedRule(ruleFields, before, url) }),
      // What depends on stored values is written only while they are the same.
      expected: expected ?? {
        ...(hasNewRule && { url: before.url, rule: before.rule }),
        ...(keepsHeaders && { headers: await headersToKeep(deps, before, url) }),
      },
    });
    if (webhook !== undefined) return webhook;
  }
  throw new Problem('precondition_failed');
}

/**
 * What the response to a change says: where the webhook sends now, and what may prevent that. Sends a verification mail to
 * a new mail address.
 */
export async function changeWords(deps: WebhookDeps, webhook: ChangedWebhook): Promise<string> {
  const { was, url, state, pausedReason, teamId } = webhook;
  if (was === undefined || was.url === url) return 'Webhook updated';
  const sentences = [
    'Webhook updated: it sends to the new URL.',
    ...(isMailUrl(url)
      ? await verificationWords(deps, webhook, { isNew: true })
      : [await addressWarning(deps, url, teamId)]),
    state === 'paused' && pausedReason !== UNVERIFIED ? 'It is still paused: resume it to send.' : '',
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

/** The changes in the form of the store, except for the URL and the rule. */
function storedChanges({ sealer }: Pick<WebhookDeps, 'sealer'>, teamId: string, changes: WebhookChanges) {
  const { headers, name, description, labels, events } = changes;
  const settings = settingsOf(changes);
  const isNone = headers === null || (headers !== undefined && Object.keys(headers).length === 0);
  return {
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(labels === undefined ? {} : { labels }),
    ...(events === undefined ? {} : { events }),
    ...(headers === undefined ? {} : { headers: isNone ? null : sealHeaders(sealer, teamId, headers) }),
    ...(changes.rotateSecret === true ? { secret: newSealedSecret(sealer, teamId) } : {}),
  };
}

export function settingsOf(changes: object): Partial<WebhookSettings> {
  return Object.fromEntries(
    Object.entries(changes).filter(([field]) => Object.hasOwn(DEFAULT_WEBHOOK_SETTINGS, field)),
  );
}

/**
 * What waits is written for its transport: a server would receive letters, and a mail program no letter at all.
 *
 * @throws Problem `field_invalid`
 */
function refuseOtherTransport(before: string, url = before): void {
  if (isMailUrl(before) === isMailUrl(url)) return;
  throw new Problem('field_invalid', {
    sentence: `\`url\` must ${isMailUrl(before) ? 'be mailto: with one address, because this webhook sends mail' : 'be an http:// or https:// URL, because this webhook sends requests'}. Create another webhook instead`,
  });
}

/**
 * The encrypted headers of a webhook that gets another URL. Their values are never shown, so nobody may learn them by
 * sending them to a server of their own.
 *
 * @throws Problem `field_invalid` if there are headers and the new URL has another origin
 */
async function headersToKeep(
  { store }: Pick<WebhookDeps, 'store'>,
  { teamId, id, url: before }: Webhook,
  url: string,
): Promise<string | null> {
  const headers = (await store.webhooks.sealed({ teamId, id }))?.headers ?? null;
  if (headers === null || new URL(before).origin === new URL(url).origin) return headers;
  throw new Problem('field_invalid', {
    sentence:
      'The new `url` has another origin, and the webhook has custom headers, which may hold credentials for the old one: ' +
      'set `headers` as well, or to null to send none',
  });
}

/** The rule after a change; null if it is no rule any more. @param newUrl undefined: unchanged */
async function changedRule(
  fields: RuleFields,
  { rule: stored, url: oldUrl }: Pick<Webhook, 'rule' | 'url'>,
  newUrl = oldUrl,
): Promise<Rule | null> {
  if (stored === null && Object.keys(fields).length === 0) return null;
  const { effectiveFirstVersion, ruleFrom } = await import('../model/rule-fields.ts');
  const before = stored ?? DEFAULT_RULE;
  const { firstVersion, ...others } = fields;
  const unchosen = ruleFrom(others, before, newUrl);
  // The API shows the default where nothing was chosen. Sending that back must not choose it.
  const isDefault = before.firstVersion === null && firstVersion === effectiveFirstVersion(unchosen);
  return orNull(isDefault ? unchosen : ruleFrom(fields, before, newUrl));
}

function orNull(rule: Rule): Rule | null {
  return hasRule(rule) ? rule : null;
}

function changesMistake(fields: Record<string, unknown>): string | undefined {
  const names = Object.keys(fields);
  if (names.length === 0) return `Set at least one of ${FIELDS.join(', ')}`;
  const { ordered, ratePerSecond, timeoutMs, headers, name, description, labels, url, events } = fields;
  if (ordered !== undefined && typeof ordered !== 'boolean') return '`ordered` must be true or false';
  if (ratePerSecond !== undefined && ratePerSecond !== null && !isWithin(ratePerSecond, MIN_RATE, MAX_RATE)) {
    return `\`ratePerSecond\` must be a number from ${MIN_RATE} to ${MAX_RATE}, or null for no limit`;
  }
  const isTimeout = isWithin(timeoutMs, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS) && Number.isInteger(timeoutMs);
  if (timeoutMs !== undefined && !isTimeout) {
    return `\`timeoutMs\` must be a whole number of milliseconds from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`;
  }
  if (fields.rotateSecret !== undefined && typeof fields.rotateSecret !== 'boolean') {
    return '`rotateSecret` must be true or false';
  }
  const mistakes = [
    name == null ? undefined : nameMistake(name),
    description == null ? undefined : descriptionMistake(description),
    labels === undefined ? undefined : labelsMistake(labels),
    url === undefined ? undefined : destinationMistake(url)?.replace('`webhookUrl`', '`url`'),
    events === undefined ? undefined : knownEventsMistake(events),
    headers == null ? undefined : headersMistake(headers),
  ];
  return mistakes.find((mistake) => mistake !== undefined);
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}

export const DEFAULT_OVERLAP_HOURS = 24;
export const MAX_OVERLAP_HOURS = 168;
const HOUR_MS = 3_600_000;

/**
 * @param input.overlapHours 0 to 168: how long deliveries are signed with both secrets
 * @returns the new secret, and until when the old secret is used too
 * @throws Problem `webhook_not_found`
 */
export async function rotateSecret(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  input: { teamId: string; id: string; overlapHours: number },
): Promise<{ secret: string; overlapUntil: number }> {
  const { teamId, id } = input;
  const overlapMs = Math.round(input.overlapHours * HOUR_MS);
  const overlapUntil = deps.store.now() + overlapMs;
  const webhook = await deps.store.webhooks.rotate({
    teamId,
    id,
    secret: newSealedSecret(deps.sealer, teamId),
    overlapMs,
  });
  if (webhook === undefined) throw new Problem('webhook_not_found');
  // After two concurrent rotations only one secret is valid, so the secret is read again, and both calls return the
  // valid secret.
  return { secret: await webhookSecret(deps, { teamId, id }), overlapUntil };
}
