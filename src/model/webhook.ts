/** A webhook subscribes one URL to events of one workflow. This file also validates subscriptions. */
import { hash } from 'node:crypto';
import { canonicalEvents, eventNamesMistake } from './event.ts';
import type { Breaker } from './lane.ts';
import { isMailUrl, readMailUrl } from './messages/mail-address.ts';
import type { Rule } from './rule.ts';

export const WEBHOOK_STATES = ['active', 'paused'] as const;
type WebhookState = (typeof WEBHOOK_STATES)[number];

/** A subscription. `url` and `events` are stored exactly as received. Times in epoch milliseconds. */
export interface Webhook {
  teamId: string;
  id: string;
  /** Id of the workflow; null: the webhook receives events of all workflows of the team. */
  workflowId: string | null;
  url: string;
  events: string[];
  /** A name for people; null: none. */
  name: string | null;
  /** What the webhook is for; null: none. */
  description: string | null;
  /** Words by which people find webhooks, such as `customer:acme`, in the order in which they were given. */
  labels: string[];
  /** What the webhook receives; null: every event that it is subscribed to. */
  rule: Rule | null;
  /** The number of the rule: each new rule of a webhook has a higher one. Null without a rule. */
  ruleRevision: number | null;
  /** The last error of the rule at run time. */
  ruleMistake: FilterMistake | null;
  state: WebhookState;
  settings: WebhookSettings;
  pausedAt: number | null;
  /** Why the webhook is paused, as a sentence. */
  pausedReason: string | null;
  /** Time of the first failure since the last success; null if no attempt has failed since the last success. */
  failingSince: number | null;
  /** Why due deliveries are held back; null if no deliveries are held back. */
  breaker: Breaker | null;
  /** Time of the last successful delivery, updated at most once a minute. */
  lastSuccessAt: number | null;
  /** When the recipient of a webhook that sends mail confirmed the address; null for other webhooks. */
  verifiedAt: number | null;
  createdAt: number;
}

/** An error of a rule at run time: in which event and, if any, in which record. */
export interface FilterMistake {
  /** Epoch milliseconds. */
  at: number;
  eventId: string;
  recordId: string | null;
  /** A sentence. */
  message: string;
}

/** Settings of a webhook. Its custom headers are stored separately, encrypted. */
export interface WebhookSettings {
  /**
   * Whether to send one delivery at a time, in the order of the events. A failing delivery then blocks later
   * deliveries.
   */
  ordered: boolean;
  /** Maximum number of requests per second; null: unlimited. */
  ratePerSecond: number | null;
  /** Timeout of one attempt, from the start of the attempt to the last byte that is read of the response. */
  timeoutMs: number;
}

export const DEFAULT_WEBHOOK_SETTINGS: WebhookSettings = {
  ordered: false,
  ratePerSecond: null,
  timeoutMs: 15_000,
};

export const MAX_EVENTS = 100;
export const MAX_EVENT_NAME = 256;
export const MAX_URL = 2_048;

/**
 * Describes an invalid callback URL; undefined if the URL is valid. Checks only the syntax: the address policy is
 * applied at each attempt.
 */
export function urlMistake(url: unknown): string | undefined {
  if (typeof url !== 'string') return '`webhookUrl` must be a string: an absolute http:// or https:// URL';
  if (url.length > MAX_URL)
    return `\`webhookUrl\` must be at most ${MAX_URL} characters, found ${url.length}`;
  // The URL parser accepts more than a receiver should rely on: `http:example.com`, spaces, backslashes.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  const wellFormed = url.isWellFormed() && !/[\s\u0000-\u001f\u007f\\]/.test(url) && URL.canParse(url);
  if (!wellFormed || !/^https?:\/\/[^/?#\\]/i.test(url)) {
    return '`webhookUrl` must be an absolute http:// or https:// URL with a host and without spaces';
  }
  return undefined;
}

/** Like `urlMistake`, but also accepts `mailto:` with one address. The frozen operation of the contract does not. */
export function destinationMistake(url: unknown): string | undefined {
  if (typeof url !== 'string' || !isMailUrl(url)) {
    const mistake = urlMistake(url);
    return mistake && `${mistake}, or mailto: with one address`;
  }
  const found = readMailUrl(url);
  return 'mistake' in found ? `\`webhookUrl\` ${found.mistake}` : undefined;
}

/** Describes an invalid list of events; undefined if it is valid. Unknown event names are allowed. */
export function eventsMistake(events: unknown): string | undefined {
  if (!Array.isArray(events)) return '`events` must be an array of event names';
  if (events.length === 0 || events.length > MAX_EVENTS) {
    return `\`events\` must contain 1 to ${MAX_EVENTS} event names, found ${events.length}`;
  }
  const bad = events.findIndex(
    (name) => typeof name !== 'string' || name.length === 0 || name.length > MAX_EVENT_NAME,
  );
  if (bad !== -1) {
    return `\`events[${bad}]\` must be a non-empty string of at most ${MAX_EVENT_NAME} characters`;
  }
  return undefined;
}

/** Like `eventsMistake`, but also rejects event names that never fire. */
export function knownEventsMistake(events: unknown): string | undefined {
  const mistake = eventsMistake(events);
  if (mistake !== undefined) return mistake;
  const unknown = eventNamesMistake(events as string[]);
  return unknown === undefined ? undefined : `\`events\`: ${unknown}`;
}

export const MAX_WEBHOOK_NAME = 100;

/** Describes an invalid name of a webhook; undefined if it is valid. */
export function nameMistake(name: unknown): string | undefined {
  const isText = typeof name === 'string' && name.trim() !== '' && name.isWellFormed();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  if (isText && name.length <= MAX_WEBHOOK_NAME && !/[\u0000-\u001f\u007f]/.test(name)) return undefined;
  return `\`name\` must be a string of 1 to ${MAX_WEBHOOK_NAME} characters on one line, or null for no name`;
}

export const MAX_DESCRIPTION = 500;
export const MAX_LABELS = 20;
export const MAX_LABEL = 64;

/** Describes an invalid description of a webhook; undefined if it is valid. */
export function descriptionMistake(description: unknown): string | undefined {
  const isText = typeof description === 'string' && description.trim() !== '' && description.isWellFormed();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  const isPlain = isText && !/[\u0000-\u0009\u000b-\u001f\u007f]/.test(description);
  if (isPlain && description.length <= MAX_DESCRIPTION) return undefined;
  return `\`description\` must be a string of 1 to ${MAX_DESCRIPTION} characters without control characters, or null for none`;
}

/** Describes invalid labels of a webhook; undefined if they are valid. */
export function labelsMistake(labels: unknown): string | undefined {
  if (!Array.isArray(labels)) return '`labels` must be an array of texts, such as ["customer:acme"]';
  if (labels.length > MAX_LABELS) {
    return `\`labels\` must contain at most ${MAX_LABELS} labels, found ${labels.length}`;
  }
  const bad = labels.findIndex((label) => !isLabel(label));
  if (bad !== -1) {
    return `\`labels[${bad}]\` must be a string of 1 to ${MAX_LABEL} characters on one line, without spaces at its ends`;
  }
  const twice = labels.findIndex((label, at) => labels.indexOf(label) < at);
  return twice === -1 ? undefined : `\`labels[${twice}]\` repeats another label. Remove one`;
}

function isLabel(label: unknown): boolean {
  const isText = typeof label === 'string' && label !== '' && label === label.trim() && label.isWellFormed();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  return isText && label.length <= MAX_LABEL && !/[\u0000-\u001f\u007f]/.test(label);
}

/** `pausedReason` of a webhook that sends mail to an address that nobody has confirmed yet. */
export const UNVERIFIED =
  'The address is not verified: its owner must open the link in the verification mail, which can be sent again';
/** `pausedReason` after a click on the link that ends the mails. */
export const WITHDRAWN =
  'The recipient has unsubscribed, and must verify the address again before the webhook can be resumed';

export const MAX_PAUSE_REASON = 1_000;

/** Describes an invalid reason for a pause; undefined if it is valid. */
export function reasonMistake(reason: unknown): string | undefined {
  const isText = typeof reason === 'string' && reason.trim() !== '' && reason.isWellFormed();
  if (isText && reason.length <= MAX_PAUSE_REASON && !reason.includes('\0')) return undefined;
  return `\`reason\` must be a string of 1 to ${MAX_PAUSE_REASON} characters`;
}

/**
 * Returns the same text for equal sets of event names and equal filters, so that a repeated subscription is recognized
 * regardless of order and duplicates. A webhook with a rule but no filter differs from one without a rule.
 */
export function eventSetKey(events: readonly string[], rule: Pick<Rule, 'filter'> | null = null): string {
  const names = JSON.stringify([...new Set(events)].sort());
  return rule === null ? names : `${names} ${hash('sha256', rule.filter ?? '')}`;
}

/** The event types that a subscription matches, in the format of the database: `|a|b|`, or `|*|` for all. */
export function firesFor(events: readonly string[]): string {
  return `|${[...new Set(canonicalEvents(events).known)].sort().join('|')}|`;
}
