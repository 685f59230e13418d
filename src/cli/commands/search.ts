/** `flowhook search`: finds a text in everything that a team has. */
import { SEARCHED } from '../../jobs/search.ts';
import type { Command } from '../command.ts';
import { oneLine } from '../job-words.ts';
import { type Options, someOf, wholeNumber } from '../options.ts';
import { onTarget, soleTeam, type Target } from '../target.ts';
import { print, say, table } from '../terminal.ts';

const DEFAULT_HITS = 10;
const MAX_HITS = 50;

export function addSearch(program: Command): void {
  const search = program
    .command('search')
    .description('find a text in workflows, webhooks, jobs, deliveries, events and records')
    .withExamples('search acme', 'search acme --type webhooks,records --json')
    .argument('<text>', 'text, or the id of anything')
    .option('--team <slug>', 'team, if there are several')
    .option('--type <types>', `only these types: comma-separated, of ${SEARCHED.join(', ')}`)
    .withValues('--type', SEARCHED)
    .option(
      '--limit <number>',
      `maximum number of hits of each type, up to ${MAX_HITS} (default: ${DEFAULT_HITS})`,
    );
  onTarget(search, searchAll, { check: (_text: string, options) => void placeFrom(options) });
}

async function searchAll(target: Target, text: string, options: Options): Promise<void> {
  const { client } = await soleTeam(target, 'One team is searched');
  const found = await client.search(text, placeFrom(options));
  const cells = found.hits.map(({ type, id, title, text: match }) => [type, id, title, oneLine(match, 200)]);
  const heads = [{ name: 'type' }, { name: 'id' }, { name: 'of', drop: 1 }, { name: 'match', drop: 2 }];
  print(options, found, table(cells, process.stdout.columns, heads));
  if (options.json === true) return;
  if (found.hits.length === 0) say('Nothing found');
  if (found.incomplete.length > 0) say(`Not searched completely: ${found.incomplete.join(', ')}`);
}

/** @throws UsageError */
function placeFrom({ type, limit }: Options) {
  return {
    types: someOf('--type', type, SEARCHED),
    limit: wholeNumber('--limit', limit ?? DEFAULT_HITS, 1, MAX_HITS),
  };
}
