/** `flowhook deliveries list`: the deliveries to all webhooks of a team. */
import type { DeliveryFilter } from '../../../client/src/flowhook-client.ts';
import { DELIVERY_STATES } from '../../model/delivery.ts';
import { EVENT_TYPES } from '../../model/event.ts';
import type { Command } from '../command.ts';
import { dateFrom, type Options, someOf, wholeNumber } from '../options.ts';
import { onTarget, soleTeam, type Target } from '../target.ts';
import { print, say, table } from '../terminal.ts';
import { cellsOf, DEFAULT_DELIVERIES, HEADS, MAX_DELIVERIES, STATES } from './deliveries.ts';

export function addAllDeliveries(program: Command): void {
  const noun = program.command('deliveries').description('find deliveries to all webhooks');
  const list = withFilter(noun.command('list'))
    .description('list the deliveries to all webhooks, newest first')
    .withExamples('deliveries list --state waiting,dead', 'deliveries list --status 5xx --search acme')
    .option(
      '--limit <number>',
      `maximum number of deliveries, up to ${MAX_DELIVERIES} (default: ${DEFAULT_DELIVERIES})`,
    );
  onTarget(list, listAll, { check: (options) => void pageFrom(options) });
}

/** Adds the flags that select deliveries. */
function withFilter(command: Command): Command {
  return command
    .option('--team <slug>', 'team, if there are several')
    .option('--state <states>', `only deliveries in these states: comma-separated, ${STATES}`)
    .withValues('--state', DELIVERY_STATES)
    .option('--webhook <id>', 'only deliveries to this webhook')
    .option('--workflow <id>', 'only events of this workflow')
    .option('--event <types>', 'only these types of events: comma-separated')
    .withValues('--event', EVENT_TYPES)
    .option(
      '--status <status>',
      'only these last responses: a status such as 503, a class such as 5xx, or none',
    )
    .option('--search <text>', 'only with this text in the last error, or in the name or URL of the webhook')
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
    workflowId: text('workflow'),
    event: someOf('--event', options.event, EVENT_TYPES),
    status: text('status'),
    q: text('search'),
    since: dateFrom('--since', options.since),
    until: dateFrom('--until', options.until),
  };
}
