/** Webhooks and deliveries in words: lines of lists, and the timing of an attempt. */
import type { ShownDelivery, ShownDeliveryDetail } from '../resources/delivery.ts';
import type { ShownWebhook } from '../resources/webhook.ts';
import { durationWords } from '../std/amounts.ts';
import { inWords, oneLine } from './job-words.ts';
import type { Head } from './table.ts';

const MAX_URL_SHOWN = 60;

/** What is above the cells of `webhookCells`. */
export const WEBHOOK_HEADS: readonly Head[] = [
  { name: 'webhook' },
  { name: 'workflow', drop: 2 },
  { name: 'state' },
  { name: 'events', drop: 1 },
  { name: 'url' },
];

/** What is above the cells of `deliveryCells`. */
export const DELIVERY_HEADS: readonly Head[] = [
  { name: 'delivery' },
  { name: 'state' },
  { name: 'event' },
  { name: 'made' },
  { name: 'attempts', drop: 1 },
  { name: 'next', drop: 2 },
  { name: 'last answer', drop: 3 },
];

/** The cells of one line of a list. `team` is a slug. */
export function webhookCells(webhook: ShownWebhook, team: string, nowMs: number): string[] {
  return [
    webhook.id,
    `${team}/${webhook.workflowId ?? '*'}`,
    standWords(webhook, nowMs),
    oneLine(webhook.events.join(','), 50),
    oneLine(webhook.url, MAX_URL_SHOWN),
  ];
}

/** `active, took one 3 min ago`, `active, failing for 2 h`, `paused`. */
export function standWords(webhook: ShownWebhook, nowMs: number): string {
  if (webhook.state === 'paused') return 'paused';
  if (webhook.failingSince !== null) return `failing for ${agoWords(webhook.failingSince, nowMs)}`;
  if (webhook.lastSuccessAt === null) return 'active';
  return `active, took one ${agoWords(webhook.lastSuccessAt, nowMs)} ago`;
}

/** The cells of one line of a list. */
export function deliveryCells(delivery: ShownDelivery, nowMs: number): string[] {
  const { id, state, origin, eventType, attempt, createdAt, lastAttempt } = delivery;
  return [
    id,
    state,
    origin === 'event' ? eventType : `${eventType} (${origin})`,
    createdAt,
    attempt === 1 ? '1 attempt' : `${attempt} attempts`,
    state === 'waiting' ? nextWords(delivery, nowMs) : '',
    lastAttempt === null ? '' : oneLine(lastAttempt.message, 100),
  ];
}

/** `next try in 3 min 20 s`, `due now`. */
export function nextWords({ nextAttemptAt }: Pick<ShownDelivery, 'nextAttemptAt'>, nowMs: number): string {
  if (nextAttemptAt === null) return 'waits';
  const nextAt = Date.parse(nextAttemptAt);
  return nextAt <= nowMs ? 'due now' : `next try ${inWords(nextAt, nowMs)}`;
}

type Attempt = ShownDeliveryDetail['attempts'][number];

/** Where the time of an attempt went: `1.2 s after waiting 3 ms: name 20 ms, connection 8 ms, first byte 1.1 s`. */
export function timingWords({ durationMs, timing }: Pick<Attempt, 'durationMs' | 'timing'>): string {
  const steps: (readonly [string, number | null | undefined])[] = [
    ['name', timing?.dnsMs],
    ['connection', timing?.connectMs],
    ['TLS', timing?.tlsMs],
    ['first byte', timing?.firstByteMs],
  ];
  const said = steps.flatMap(([name, ms]) => (ms == null ? [] : [`${name} ${durationWords(ms)}`]));
  const waited = timing == null ? '' : ` after waiting ${durationWords(timing.queuedMs)}`;
  return `${durationWords(durationMs)}${waited}${said.length === 0 ? '' : `: ${said.join(', ')}`}`;
}

function agoWords(iso: string, nowMs: number): string {
  return durationWords(Math.max(0, nowMs - Date.parse(iso)));
}
