/** `flowhook deliveries list|retry`: finds deliveries to all webhooks of a team, and sends them now. */
import { setTimeout as pause } from 'node:timers/promises';
import type {
  DeliveryFilter,
  Flowhook,
  Retry,
  RetryPlan,
  RetrySelection,
} from '../../../../client/src/flowhook-client.ts';
import { DELIVERY_STATES, NOT_ARRIVED } from '../../../model/delivery.ts';
import { EVENT_TYPES } from '../../../model/event.ts';
import { grouped } from '../../../std/amounts.ts';
import { createLiveLine } from '../../../std/progress-bar.ts';
import { statesWords } from '../../../webhooks/replay.ts';
import { retryWords } from '../../../webhooks/retry.ts';
import type { Command } from '../../command.ts';
import { UsageError } from '../../exit.ts';
import { oneLine } from '../../job-words.ts';
import { dateFrom, type Options, someOf, wholeNumber } from '../../options.ts';
import { onTarget, soleTeam, type Target } from '../../target.ts';
import { addYes, confirm, print, say, screen, table, untilInterrupted } from '../../terminal.ts';
import {
  cellsOf,
  DEFAULT_DELIVERIES,
  failureWords,
  HEADS,
  MAX_DELIVERIES,
  replayOne,
  STATES,
  sentWords,
  warnWithoutServer,
} from './deliveries.ts';

/** `--wait` ends when nothing has changed for this long, for example because a webhook is held back. */
const STILL_MS = 30_000;

export function addAllDeliveries(program: Command): void {
  const noun = program.command('deliveries').description('find deliveries to all webhooks');
  const list = withFilter(noun.command('list'))
    .description('list the deliveries to all webhooks, newest first')
    .withExamples('deliveries list --state waiting,dead', 'deliveries list --status 5xx --search acme')
    .option(
      '--limit <number>',
      `maximum number of deliveries, up to ${MAX_DELIVERIES} (default: ${DEFAULT_DELIVERIES})`,
    )
    .option('--search <text>', 'only with this text in the last error, or in the name or URL of the webhook');
  onTarget(list, listAll, { check: (options) => void pageFrom(options) });

  const retry = withFilter(noun.command('retry'))
    .description(
      `send a delivery now, or all that have not arrived (--state ${NOT_ARRIVED.join()}), to all webhooks`,
    )
    .withExamples(
      'deliveries retry --dry-run',
      'deliveries retry --status 5xx --wait',
      'deliveries retry DELIVERY',
    )
    .argument('[delivery]', 'id of a delivery (default: all that the flags select)')
    .option('--dry-run', 'only count the events that would be sent')
    .option('--wait', 'wait for the attempts and print the outcome (requires a running server)');
  onTarget(
    addYes(retry),
    (target, id: string | undefined, options: Options) =>
      id === undefined ? retryAll(target, options) : replayOne(target, id, options),
    {
      own: (options: Options) => options.wait === true,
      check: (id: string | undefined, options) => void selectionFrom(id, options),
    },
  );
}

/** Adds the flags that select deliveries. */
function withFilter(command: Command): Command {
  return command
    .option('--team <slug>', 'team, if there are several')
    .option('--state <states>', `only deliveries in these states: comma-separated, ${STATES}`)
    .withValues('--state', DELIVERY_STATES)
    .option('--webhook <id>', 'only deliveries to this webhook')
    .option('--label <label>', 'only deliveries to webhooks with this label, such as customer:acme')
    .option('--workflow <id>', 'only events of this workflow')
    .option('--event <types>', 'only these types of events: comma-separated')
    .withValues('--event', EVENT_TYPES)
    .option(
      '--status <status>',
      'only these last responses: a status such as 503, a class such as 5xx, or none',
    )
    .option('--since <time>', 'only deliveries created at or after this time, such as 2026-11-20T10:00Z')
    .option('--until <time>', 'only deliveries created at or before this time');
}

async function listAll(target: Target, options: Options): Promise<void> {
  const { limit, ...filter } = pageFrom(options);
  const { client } = await soleTeam(target, 'Deliveries are listed for one team');
  const found = await client.deliveries.list({ ...filter, limit }).take(limit);
  const cells = found.map((one) => {
    const [id = '', ...others] = cellsOf(one);
    return [id, one.webhookName ?? one.webhookId, one.workflowId ?? '-', ...others];
  });
  const [first, ...others] = HEADS;
  const heads = [first ?? { name: '' }, { name: 'webhook' }, { name: 'workflow', drop: 4 }, ...others];
  print(options, found, table(cells, process.stdout.columns, heads));
  if (found.length === 0 && options.json !== true) say('No deliveries found');
}

/** @throws UsageError */
function pageFrom(options: Options): DeliveryFilter & { limit: number } {
  const limit = wholeNumber('--limit', options.limit ?? DEFAULT_DELIVERIES, 1, MAX_DELIVERIES);
  return { limit, ...filterFrom(options) };
}

/** @throws UsageError */
function filterFrom(options: Options): DeliveryFilter {
  const text = (name: string) => (options[name] === undefined ? undefined : String(options[name]));
  return {
    state: someOf('--state', options.state, DELIVERY_STATES),
    webhookId: text('webhook'),
    label: text('label'),
    workflowId: text('workflow'),
    event: someOf('--event', options.event, EVENT_TYPES),
    status: text('status'),
    q: text('search'),
    since: dateFrom('--since', options.since),
    until: dateFrom('--until', options.until),
  };
}

async function retryAll(target: Target, options: Options): Promise<void> {
  const selection = selectionFrom(undefined, options);
  const { client } = await soleTeam(target, 'Deliveries are retried for one team');
  const plan = await client.deliveries.planRetry(selection);
  if (!(await confirmRetry(options, plan))) return;
  // `plan.until` excludes deliveries that were created after the plan that the user confirmed.
  const retry = await client.deliveries.retry({ ...selection, until: plan.until });
  if (retry === null) return say('There is nothing to send any more');
  if (options.wait === true && !target.local?.owned) {
    return printOutcome(await follow(client, retry, target.lookMs), options);
  }
  print(options, retry, [retry.id]);
  say('The retry runs on the server, also after a restart. Use --wait to see its outcome');
  warnWithoutServer(target);
}

/** Prints what a retry would send. Returns false if that is all. @throws UsageError unless the user confirms */
async function confirmRetry(options: Options, plan: RetryPlan): Promise<boolean> {
  const rows = plan.webhooks.map(({ webhookId, name, url, byState, held }) => [
    name ?? webhookId,
    url,
    statesWords(plan.states, byState),
    held ?? '',
  ]);
  const heads = [
    { name: 'webhook' },
    { name: 'url', drop: 1 },
    { name: 'events' },
    { name: 'held back', drop: 2 },
  ];
  const lines = rows.length === 0 ? [] : table(rows, process.stdout.columns, heads);
  if (options.dryRun === true || (plan.count === 0 && plan.isComplete)) {
    print(options, plan, [...lines, retryWords(plan)]);
    return false;
  }
  for (const line of options.json === true ? [] : lines) say(line);
  await confirm(options, { what: retryWords(plan), otherwise: 'nothing was sent' });
  return true;
}

/** Follows a retry until every event has been attempted, nothing changes for a while, or the user presses Ctrl-C. */
async function follow(client: Flowhook, { id }: Retry, lookMs: number): Promise<Retry> {
  const line = createLiveLine(screen, () => performance.now());
  const interrupted = untilInterrupted();
  let [words, changedMs] = ['', performance.now()];
  try {
    for (;;) {
      const retry = await client.deliveries.readRetry(id);
      if (words !== sentWords(retry)) [words, changedMs] = [sentWords(retry), performance.now()];
      const isOver = retry.state === 'done' && retry.underWay === 0;
      const isStill = performance.now() - changedMs > STILL_MS;
      if (isOver || isStill || interrupted.signal.aborted) return retry;
      line.show(() => `${id}  ${words}`);
      await pause(lookMs, undefined, { signal: interrupted.signal }).catch(() => {});
    }
  } finally {
    line.stop();
    interrupted.clear();
  }
}

/** Exit code: 0 if all events arrived, 1 if some failed, 7 if some were not attempted yet. */
function printOutcome(retry: Retry, options: Options): void {
  const { id, state, underWay, failed, canceled, replays } = retry;
  const failures = replays.flatMap(({ webhookId, outcome }) =>
    failureWords(outcome).map((words) => `  ${webhookId}: ${oneLine(words.trim(), 200)}`),
  );
  print(options, retry, [`${id} ${state}: ${sentWords(retry)}`, ...failures]);
  const isRunning = state === 'running' || underWay > 0;
  if (isRunning)
    say(`${grouped(underWay)} events have not been attempted yet. The retry continues on the server`);
  if (failed + canceled > 0) process.exitCode = 1;
  else if (isRunning) process.exitCode = 7;
}

/** @throws UsageError, also if there are a delivery and flags that select others */
function selectionFrom(id: string | undefined, options: Options): RetrySelection {
  const { state: states, event: events, q: _, ...selection } = filterFrom(options);
  const given = [states, events, ...Object.values(selection), options.dryRun];
  if (id !== undefined && given.some((one) => one !== undefined)) {
    throw new UsageError('Either name a delivery, or select deliveries with flags');
  }
  return { states, events, ...selection };
}
