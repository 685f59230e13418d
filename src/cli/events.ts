/** `flowhook events`: lists events in order. */
import type { Command } from 'commander';
import { parseExactly } from '../model/record.ts';
import { toIso } from '../std/clock.ts';
import type { StoredEvent } from '../store/operations/events.ts';
import { UsageError } from './exit.ts';
import { findTeams } from './find.ts';
import { wholeNumber } from './flag-values.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { DEFAULT_EVENTS, EVENT_HEADS, listEventsAt, MAX_EVENTS } from './remote-events.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { table } from './table.ts';

export function addEvents(program: Command): void {
  const events = program.command('events').description('events: what happened, in order');
  const list = events
    .command('list')
    .description('list events of a team, oldest first (with --json: their bodies as sent to webhooks)')
    .option('--team <slug>', 'its team, if there are several')
    .option('--after <sequence>', 'only events after this number (default: the newest events)')
    .option('--limit <number>', `how many at most (default: ${DEFAULT_EVENTS}, up to ${MAX_EVENTS})`);
  orRemote(addStoreOptions(list), listEvents, listEventsAt);
}

async function listEvents(options: Options): Promise<void> {
  const limit = wholeNumber('--limit', options.limit ?? DEFAULT_EVENTS, 1, MAX_EVENTS);
  const after =
    options.after === undefined
      ? undefined
      : wholeNumber('--after', options.after, 0, Number.MAX_SAFE_INTEGER);
  await withStore(options, { make: false }, async (store) => {
    const [team, ...others] = await findTeams(store, options.team);
    if (team === undefined) throw new UsageError('There is no team yet. `flowhook serve` makes one');
    if (others.length > 0) {
      const slugs = [team, ...others].map(({ slug }) => slug).join(', ');
      throw new UsageError(`Events are counted for each team: say which with --team (${slugs})`);
    }
    const teamId = team.id;
    const afterSequence = after ?? Math.max(0, (await store.events.newestSequence({ teamId })) - limit);
    const found = await store.events.list({ teamId, afterSequence, limit });
    print(
      options,
      found.map(({ body }) => parseExactly(body)),
      table(found.map(cellsOf), process.stdout.columns, EVENT_HEADS, store.now()),
    );
    if (found.length === 0 && options.json !== true) say('No events found');
  });
}

function cellsOf({ sequence, id, type, workflowId, jobId, createdAt }: StoredEvent): string[] {
  return [String(sequence), toIso(createdAt), type, workflowId ?? '-', id, jobId ?? ''];
}
