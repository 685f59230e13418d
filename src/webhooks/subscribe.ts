/** Subscribes webhooks, changes their names, rules, settings and headers, and rotates their secrets. */

import { Problem } from '../model/error.ts';
import { canonicalEvents, eventNameMistake } from '../model/event.ts';
import { isMailUrl } from '../model/messages/mail-address.ts';
import { DEFAULT_RULE, hasRule, RULE_FIELDS, type Rule, type RuleField } from '../model/rule.ts';
import {
  DEFAULT_WEBHOOK_SETTINGS,
  nameMistake,
  type Webhook,
  type WebhookSettings,
} from '../model/webhook.ts';
import { within } from '../std/clock.ts';
import { sendVerification, storedDestination } from './mail/verification.ts';
import { headersMistake, newSealedSecret, sealHeaders, type WebhookDeps, webhookSecret } from './sealed.ts';

const MAX_NAMED_EVENTS = 10;

/**
 * Subscribes a webhook, or returns the existing webhook with the same workflow, URL, set of events and filter. If
 * `workflowId` is null, the webhook receives the events of all workflows of the team. `settings`, `name` and the rest of
 * `rule` apply only to a new webhook. `url` and `events` must be valid (`model/webhook.ts`).
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
      ? await verificationWords(deps, webhook, result.outcome === 'created')
      : [await addressWarning(deps, url, input.teamId)]),
  ];
  return { webhook, message: sentences.filter((sentence) => sentence !== '').join(' ') };
}

/** Sends the verification mail of a new webhook whose address is not verified yet. */
async function verificationWords(deps: WebhookDeps, webhook: Webhook, isNew: boolean): Promise<string[]> {
  if (webhook.verifiedAt !== null) return [];
  if (!isNew) {
    return [
      `Its address is not verified: POST /v1/integrations/webhooks/${webhook.id}/verify sends the mail again.`,
    ];
  }
  try {
    const { message } = await sendVerification(deps, webhook);
    return ['It is paused until its address is verified.', message];
  } catch (error) {
    // The webhook exists, so the call succeeds all the same.
    if (error instanceof Problem) return ['It is paused until its address is verified.', `${error.message}.`];
    throw error;
  }
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

/** The warning's DNS lookup delays the response for at most this long. */
const LOOK_UP_MS = 1_000;

/**
 * A warning if the address policy rejects the URL; otherwise ''. IP literals and `localhost` are checked immediately.
 * Other names are looked up; a DNS lookup that fails or takes longer than a second causes no warning.
 */
export async function addressWarning(
  deps: Pick<WebhookDeps, 'policy' | 'resolver'>,
  url: string,
  team?: string,
): Promise<string> {
  try {
    const looked = deps.resolver.resolve(new URL(url).hostname, team);
    const addresses = await within(LOOK_UP_MS, looked, () => []);
    for (const address of addresses) {
      const verdict = deps.policy.verdict(address);
      if (!verdict.allowed) return `Deliveries will be refused: ${verdict.why}.`;
    }
  } catch {
    // A failed DNS lookup causes no warning, because the name may resolve by the time an event is sent.
  }
  return '';
}

export const MIN_RATE = 0.01;
export const MAX_RATE = 1_000;
export const MIN_TIMEOUT_MS = 1_000;
export const MAX_TIMEOUT_MS = 30_000;

const SETTINGS = ['ordered', 'ratePerSecond', 'timeoutMs', 'headers'] as const;
const FIELDS = [...SETTINGS, 'name', ...RULE_FIELDS];

/** The fields of a rule in the form of the API. Missing fields stay unchanged; null restores the default. */
export type RuleFields = { [Field in RuleField]?: unknown };

/** Changes to a webhook. Missing fields stay unchanged; `headers: null` removes the custom headers. */
export interface WebhookChanges extends Partial<WebhookSettings>, RuleFields {
  headers?: Record<string, string> | null;
  name?: string | null;
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

/** What `If-Match` compares, and what must not have changed since it was read. */
export interface ExpectedWebhook {
  settings: WebhookSettings;
  headers: string | null;
  name: string | null;
  rule: Rule | null;
}

/** How often a change of a rule is tried again because another call has just changed the rule. */
const MOST_TRIES = 10;

/**
 * @param input.expected the state that the caller has read: if the webhook has changed since, nothing is changed
 * @throws Problem `webhook_not_found`; `precondition_failed`; `field_invalid` for a rule that is not valid as a whole
 */
export async function changeWebhook(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  input: { teamId: string; id: string; changes: WebhookChanges; expected?: ExpectedWebhook | undefined },
): Promise<Webhook> {
  const { teamId, id, expected, changes } = input;
  const { webhooks } = deps.store;
  const ruleFields = ruleFieldsOf(changes);
  const change = {
    teamId,
    id,
    ...(expected && { expected }),
    ...storedChanges(deps, teamId, changes),
  };
  for (let tries = 0; tries < (expected === undefined ? MOST_TRIES : 1); tries += 1) {
    const before = await webhooks.get({ teamId, id });
    if (before === undefined) throw new Problem('webhook_not_found');
    refuseHeaders(before.url, changes);
    const webhook = await webhooks.change(
      Object.keys(ruleFields).length === 0
        ? change
        : // The new rule depends on the stored one, so the change is made only while that is the same.
          { expected: { rule: before.rule }, ...change, rule: await changedRule(ruleFields, before) },
    );
    if (webhook !== undefined) return webhook;
  }
  throw new Problem('precondition_failed');
}

/** The changes in the form of the store. */
function storedChanges({ sealer }: Pick<WebhookDeps, 'sealer'>, teamId: string, changes: WebhookChanges) {
  const { headers, name } = changes;
  const settings = settingsOf(changes);
  const isNone = headers === null || (headers !== undefined && Object.keys(headers).length === 0);
  return {
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(name === undefined ? {} : { name }),
    ...(headers === undefined ? {} : { headers: isNone ? null : sealHeaders(sealer, teamId, headers) }),
  };
}

function settingsOf(changes: object): Partial<WebhookSettings> {
  return Object.fromEntries(
    Object.entries(changes).filter(([field]) => Object.hasOwn(DEFAULT_WEBHOOK_SETTINGS, field)),
  );
}

/** The rule after a change; null if it is no rule any more. */
async function changedRule(
  fields: RuleFields,
  { rule: stored, url }: Pick<Webhook, 'rule' | 'url'>,
): Promise<Rule | null> {
  const { effectiveFirstVersion, ruleFrom } = await import('../model/rule-fields.ts');
  const before = stored ?? DEFAULT_RULE;
  const { firstVersion, ...others } = fields;
  const unchosen = ruleFrom(others, before, url);
  // The API shows the default where nothing was chosen. Sending that back must not choose it.
  const isDefault = before.firstVersion === null && firstVersion === effectiveFirstVersion(unchosen);
  return orNull(isDefault ? unchosen : ruleFrom(fields, before, url));
}

function orNull(rule: Rule): Rule | null {
  return hasRule(rule) ? rule : null;
}

function changesMistake(fields: Record<string, unknown>): string | undefined {
  const names = Object.keys(fields);
  if (names.length === 0) return `Set at least one of ${FIELDS.join(', ')}`;
  const { ordered, ratePerSecond, timeoutMs, headers, name } = fields;
  if (ordered !== undefined && typeof ordered !== 'boolean') return '`ordered` must be true or false';
  if (ratePerSecond !== undefined && ratePerSecond !== null && !isWithin(ratePerSecond, MIN_RATE, MAX_RATE)) {
    return `\`ratePerSecond\` must be a number from ${MIN_RATE} to ${MAX_RATE}, or null for no limit`;
  }
  const isTimeout = isWithin(timeoutMs, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS) && Number.isInteger(timeoutMs);
  if (timeoutMs !== undefined && !isTimeout) {
    return `\`timeoutMs\` must be a whole number of milliseconds from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`;
  }
  if (name !== undefined && name !== null && nameMistake(name) !== undefined) return nameMistake(name);
  return headers === undefined || headers === null ? undefined : headersMistake(headers);
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
