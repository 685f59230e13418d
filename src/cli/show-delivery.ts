/** Prints deliveries and replays that were read from the database or from a server. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ShownDelivery, ShownDeliveryDetail } from '../resources/delivery.ts';
import { oneLine } from './job-words.ts';
import { print } from './output.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { columns, table } from './table.ts';
import { untilInterrupted } from './until-interrupted.ts';
import { DELIVERY_HEADS, deliveryCells, nextWords, timingWords } from './webhook-words.ts';

/** Longer than an attempt may take. */
const WAIT_MS = 40_000;

export function printDeliveries(found: readonly ShownDelivery[], options: Options, nowMs: number): void {
  const cells = found.map((delivery) => deliveryCells(delivery, nowMs));
  print(options, found, table(cells, process.stdout.columns, DELIVERY_HEADS, nowMs));
  if (found.length > 0 || options.json === true) return;
  say('No deliveries found. `flowhook webhooks test WEBHOOK` sends one');
}

/** @param url of its webhook; undefined when that was unsubscribed */
export function printDelivery(
  shown: ShownDeliveryDetail,
  url: string | undefined,
  options: Options,
  nowMs: number,
): void {
  const rows: string[][] = [
    ['delivery', shown.id],
    ['webhook', `${shown.webhookId}  ${url ?? '(unsubscribed)'}`],
    ['event', `${shown.eventId}  ${shown.eventType}`],
    ['state', shown.state === 'waiting' ? `waiting, ${nextWords(shown, nowMs)}` : shown.state],
    ['origin', shown.origin],
    ['made', shown.createdAt],
  ];
  for (const attempt of shown.attempts) {
    const address = attempt.remoteAddress === null ? '' : ` (${attempt.remoteAddress})`;
    rows.push(
      [`attempt ${attempt.number}`, `${attempt.startedAt}  ${oneLine(attempt.message, 300)}${address}`],
      ['', timingWords(attempt)],
    );
    if (options.body === true && attempt.response?.body) rows.push(['answer', attempt.response.body]);
  }
  const body = options.body === true ? ['', JSON.stringify(shown.event, null, 2)] : [];
  print(options, shown, [...columns(rows), ...body]);
}

/** How to poll something that changes. */
export interface Looking<Seen> {
  look: () => Promise<Seen>;
  everyMs: number;
}

/**
 * Prints the outcome of the next attempt. Exit code: 0 delivered, 1 not delivered, 7 no attempt in time.
 *
 * @param looking.after how many attempts there have been before
 */
export async function waitForAttempt(
  { look, everyMs, after = 0 }: Looking<ShownDeliveryDetail> & { after?: number },
  options: Options,
  now: () => number,
): Promise<void> {
  const interrupted = untilInterrupted();
  const until = AbortSignal.any([interrupted.signal, AbortSignal.timeout(WAIT_MS)]);
  try {
    for (;;) {
      const shown = await look();
      const attempt = shown.attempts.at(-1);
      if (attempt !== undefined && shown.attempt > after) {
        const next = shown.state === 'waiting' ? ` (${nextWords(shown, now())})` : '';
        print(options, shown, [`${oneLine(attempt.message, 300)}${next}`, timingWords(attempt)]);
        process.exitCode = attempt.outcome === 'ok' ? 0 : 1;
        return;
      }
      if (until.aborted) {
        print(options, shown, []);
        process.exitCode = 7;
        say(`It was not sent yet: is a server running? \`flowhook webhooks delivery ${shown.id}\` shows it`);
        return;
      }
      await pause(everyMs, undefined, { signal: until }).catch(() => {});
    }
  } finally {
    interrupted.clear();
  }
}

/** Printed when a test or a replayed delivery is not waited for. */
export function sayOnItsWay(deliveryId: string, isPaused = false): void {
  const remark = isPaused ? 'The webhook is paused: it will be sent once that is resumed' : 'On its way';
  say(`${remark}; \`flowhook webhooks delivery ${deliveryId}\` shows it`);
}

/** Prints a delivery that is sent again and not waited for. */
export function printSentAgain(
  { message, ...made }: { message: string; deliveryId: string; retried: boolean; attempt: number },
  options: Options,
): void {
  print(options, made, [made.deliveryId]);
  say(`${message}; \`flowhook webhooks delivery ${made.deliveryId}\` shows it`);
}
