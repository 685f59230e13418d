/** A webhook: a subscription of one URL to events of one workflow, and what may be subscribed. */
import { canonicalEvents, eventNamesMistake } from './event.ts';
import type { Breaker } from './lane.ts';

export const WEBHOOK_STATES = ['active', 'paused'] as const;
type WebhookState = (typeof WEBHOOK_STATES)[number];

/** One subscription. `url` and `events` are kept exactly as they came. Times in epoch milliseconds. */
export interface Webhook {
  teamId: string;
  id: string;
  /** null: events of every workflow of the team. */
  workflowId: string | null;
  url: string;
  events: string[];
  state: WebhookState;
  settings: WebhookSettings;
  pausedAt: number | null;
  /** Why it is paused: a sentence. */
  pausedReason: string | null;
  /** Since when every attempt has failed; null after a success, and before the first attempt. */
  failingSince: number | null;
  /** Why what is due does not go out at once; null while it does. */
  breaker: Breaker | null;
  /** About when it last took a delivery: written down at most once a minute. */
  lastSuccessAt: number | null;
  createdAt: number;
}

/** How a webhook wants to be called. Headers of its own are kept apart, sealed. */
export interface WebhookSettings {
  /** One delivery at a time, in the order of the events; a failing one holds up those behind it. */
  ordered: boolean;
  /** Requests a second at most; null without a limit. */
  ratePerSecond: number | null;
  /** For one attempt, from its start to the last byte of the answer that is read. */
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
 * Says what is wrong with a callback URL, or nothing. Only its form is judged: whether its address may be
 * reached is decided when something is sent.
 */
export function urlMistake(url: unknown): string | undefined {
  if (typeof url !== 'string') return '`webhookUrl` must be a string: an absolute http:// or https:// URL';
  if (url.length > MAX_URL)
    return `\`webhookUrl\` must be at most ${MAX_URL} characters, found ${url.length}`;
  // The URL parser forgives more than a receiver should rely on: `http:example.com`, spaces, backslashes.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  const wellFormed = url.isWellFormed() && !/[\s\u0000-\u001f\u007f\\]/.test(url) && URL.canParse(url);
  if (!wellFormed || !/^https?:\/\/[^/?#\\]/i.test(url)) {
    return '`webhookUrl` must be an absolute http:// or https:// URL with a host and without spaces';
  }
  return undefined;
}

/** Says what is wrong with a list of events, or nothing. Any name is taken, known or not. */
export function eventsMistake(events: unknown): string | undefined {
  if (!Array.isArray(events)) return '`events` must be an array of event names';
  if (events.length === 0 || events.length > MAX_EVENTS) {
    return `\`events\` must hold 1 to ${MAX_EVENTS} event names, found ${events.length}`;
  }
  const bad = events.findIndex(
    (name) => typeof name !== 'string' || name.length === 0 || name.length > MAX_EVENT_NAME,
  );
  if (bad !== -1) {
    return `\`events[${bad}]\` must be a non-empty string of at most ${MAX_EVENT_NAME} characters`;
  }
  return undefined;
}

/** As `eventsMistake`; a name that never fires is a mistake as well. */
export function knownEventsMistake(events: unknown): string | undefined {
  const mistake = eventsMistake(events);
  if (mistake !== undefined) return mistake;
  const unknown = eventNamesMistake(events as string[]);
  return unknown === undefined ? undefined : `\`events\`: ${unknown}`;
}

export const MAX_PAUSE_REASON = 1_000;

/** Says what is wrong with the reason for a pause, or nothing. */
export function reasonMistake(reason: unknown): string | undefined {
  const isText = typeof reason === 'string' && reason.trim() !== '' && reason.isWellFormed();
  if (isText && reason.length <= MAX_PAUSE_REASON && !reason.includes('\0')) return undefined;
  return `\`reason\` must be a text of 1 to ${MAX_PAUSE_REASON} characters, or be left out`;
}

/** Two subscriptions with the same key, workflow and URL are the same: the *set* of names counts. */
export function eventSetKey(events: readonly string[]): string {
  return JSON.stringify([...new Set(events)].sort());
}

/** The event types that a subscription fires for, as the store keeps them: `|a|b|`, or `|*|` for all. */
export function firesFor(events: readonly string[]): string {
  return `|${[...new Set(canonicalEvents(events).known)].sort().join('|')}|`;
}
