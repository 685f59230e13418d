/** Replays of a selection at the shell: what one would send, asking, following it, and what became of it. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Flowhook, Replay, ReplayPlan, WebhookDetail } from 'flowhook-client';
import { countWords, grouped } from '../std/amounts.ts';
import { createLiveLine } from '../std/progress-bar.ts';
import { planWords, statesWords } from '../webhooks/send-again.ts';
import { oneLine } from './job-words.ts';
import type { Options } from './options.ts';
import { confirm, print, say, screen, untilInterrupted } from './terminal.ts';

/** How often it is read whether the webhook is held back. */
const HELD_EVERY_MS = 1_000;
/** How much longer than a reading took is waited before the next one: readings of large replays are not cheap. */
const REST = 5;

/**
 * Says what a replay would send, and asks if that is more than one event. Returns false if there is nothing to send, or
 * if it is only to be counted.
 *
 * @throws UsageError unless the user agrees
 */
export async function agreeToReplay(
  options: Options,
  plan: ReplayPlan,
  webhook: Pick<WebhookDetail, 'id' | 'url'>,
): Promise<boolean> {
  const { since, until, states, byState, count } = plan;
  const period = `created from ${since} to ${until}`;
  if (options.dryRun === true || (count === 0 && plan.isComplete)) {
    print(options, plan, [`${planWords(plan)} (${period})`]);
    if (count === 0) say('--state STATES chooses others, --since an earlier time');
    return false;
  }
  const events = `${plan.isComplete ? '' : 'At least '}${countWords(count, 'event')}`;
  const what = `${events} (${statesWords(states, byState)}) ${period} will be sent again to ${webhook.id} (${webhook.url})`;
  if (count > 1) await confirm(options, { what, otherwise: 'nothing was sent' });
  return true;
}

/** Why nothing goes out for a while; null if something does. */
function heldWords({ id, state, breaker }: WebhookDetail): string | null {
  if (state === 'paused') return `The webhook is paused; \`flowhook webhooks resume ${id}\` sends what waits`;
  if (breaker.state !== 'open' || breaker.nextAttemptAt === null) return null;
  if (Date.parse(breaker.nextAttemptAt) <= Date.now()) return null;
  return `${breaker.reason}; the next attempt goes out at ${breaker.nextAttemptAt}`;
}

/**
 * Follows a replay until all that it sends was tried once, its webhook is held back, or Ctrl-C; the replay itself goes on
 * in the server.
 *
 * @returns `held`: why nothing goes out for a while
 */
export async function followReplay(
  client: Flowhook,
  { id, webhookId }: Replay,
  lookMs: number,
): Promise<{ replay: Replay; held: string | null }> {
  const look = () => client.webhooks.readReplay(webhookId, id);
  const line = createLiveLine(screen, () => performance.now());
  const interrupted = untilInterrupted();
  let askAtMs = performance.now() + HELD_EVERY_MS;
  try {
    for (;;) {
      const fromMs = performance.now();
      const replay = await look();
      const isOver = replay.state === 'done' && replay.outcome.underWay === 0;
      if (isOver || interrupted.signal.aborted) return { replay, held: null };
      line.show(() => `${replay.id}  ${outcomeWords(replay)}`);
      if (replay.made > 0 && performance.now() >= askAtMs) {
        const reason = heldWords(await client.webhooks.get(webhookId));
        if (reason !== null) return { replay: await look(), held: reason };
        askAtMs = performance.now() + HELD_EVERY_MS;
      }
      const restMs = Math.max(lookMs, REST * (performance.now() - fromMs));
      await pause(restMs, undefined, { signal: interrupted.signal }).catch(() => {});
    }
  } finally {
    line.stop();
    interrupted.clear();
  }
}

/** Prints what became of a replay. Exit code: 0 all arrived, 1 some failed, 7 some were not tried yet. */
export function printOutcome(
  { replay, held }: { replay: Replay; held: string | null },
  options: Options,
): void {
  const { id, state, outcome } = replay;
  const failures = outcome.failures.map(({ count, message, retried }) => {
    const next =
      retried === 0
        ? ''
        : retried === count
          ? ' (tried again later)'
          : ` (${grouped(retried)} tried again later)`;
    return `  ${grouped(count)} × ${oneLine(message, 200)}${next}`;
  });
  print(options, replay, [`${id} ${state}: ${outcomeWords(replay)}`, ...failures]);
  if (held !== null) say(held);
  if (state === 'running' || outcome.underWay > 0) say('It goes on in the server, also after a restart');
  if (outcome.failed + outcome.canceled > 0) process.exitCode = 1;
  else if (state === 'running' || outcome.underWay > 0) process.exitCode = 7;
}

/** Prints a replay that is not followed. */
export function printBegun(replay: Replay, options: Options): void {
  print(options, replay, [replay.id]);
  say('It goes on in the server, also after a restart; --wait tells what arrived');
}

/** `12 events sent again: 9 arrived, 2 failed, 1 under way`. */
function outcomeWords({ made, outcome }: Replay): string {
  const { arrived, failed, underWay, canceled, superseded } = outcome;
  const parts: [number, string][] = [
    [arrived, 'arrived'],
    [failed, 'failed'],
    [underWay, 'under way'],
    [canceled, 'canceled'],
    [superseded, 'sent again by a later replay'],
  ];
  const said = parts.filter(([count]) => count > 0).map(([count, what]) => `${grouped(count)} ${what}`);
  return `${countWords(made, 'event')} sent again${said.length === 0 ? '' : `: ${said.join(', ')}`}`;
}
