/** `flowhook workflows profile`: what the records of a workflow look like, and how that has developed. */
import type { Profile } from '../../../client/src/flowhook-client.ts';
import { countWords, grouped } from '../../std/amounts.ts';
import { yaml } from '../../std/yaml.ts';
import type { Command } from '../command.ts';
import { type Options, wholeNumber } from '../options.ts';
import { sparkline } from '../sparkline.ts';
import { onTarget, onWorkflow, type TargetTeam } from '../target.ts';
import { print, say, table } from '../terminal.ts';

const HEADS = [
  { name: 'field' },
  { name: 'kinds' },
  { name: 'filled' },
  { name: 'over time', drop: 2 },
  { name: 'different', drop: 1 },
  { name: 'range', drop: 3 },
];

export function addProfile(workflows: Command): void {
  onTarget(
    workflows
      .command('profile')
      .description(
        'show what the records of the newest versions look like: kinds, filled values and ranges of each field',
      )
      .argument('<workflow>', 'id of the workflow')
      .option('--versions <number>', 'number of versions to compare, at most 100 (default: 20)')
      .option(
        '--expect',
        'print expectations that these versions would have met, as YAML for the workflow file',
      )
      .option('--team <slug>', 'team of the workflow, if several teams have a workflow with this id')
      .withExamples('workflows profile people', 'workflows profile people --expect'),
    (target, workflow: string, options: Options) =>
      onWorkflow(target, workflow, (team, id) => showProfile(team, id, options)),
  );
}

async function showProfile({ client }: TargetTeam, id: string, options: Options): Promise<void> {
  const versions =
    options.versions === undefined ? undefined : wholeNumber('--versions', options.versions, 1, 100);
  const found = await client.workflows.profile(id, { versions });
  const { profiles, expect } = found;
  if (options.expect === true && (profiles.length > 0 || options.json === true)) {
    print(options, { expect }, [yaml().stringify({ expect }).trimEnd()]);
  } else {
    print(options, found, lines(profiles));
  }
  if (profiles.length > 0 || options.json === true) return;
  say('There is no profile yet: a run that publishes a version has one');
}

function lines(profiles: readonly Profile[]): string[] {
  const [newest] = profiles;
  if (newest === undefined) return [];
  const { version, records, duplicates, omitted } = newest;
  const oldestFirst = [...profiles].reverse();
  const counts = oldestFirst.map((profile) => profile.records);
  const bars = sparkline(counts, { least: 0, most: Math.max(...counts) });
  const repeated = duplicates === 0 ? [] : [`${grouped(duplicates)} repeat an id`];
  return [
    [`version ${version}: ${countWords(records, 'record')}`, ...repeated, `  ${bars}`].join(' '),
    ...table(
      newest.fields.map((field) => row(field, oldestFirst)),
      process.stdout.columns,
      HEADS,
    ),
    ...(omitted === 0 ? [] : [`${countWords(omitted, 'more field')} not listed`]),
  ];
}

type Field = Profile['fields'][number];

function row(field: Field, oldestFirst: readonly Profile[]): string[] {
  const shares = oldestFirst.map(({ fields, records }) => {
    const filled = fields.find(({ name }) => name === field.name)?.filled;
    return filled === undefined || records === 0 ? null : filled / records;
  });
  return [
    field.name,
    kindWords(field),
    `${percentWords(shares.at(-1) ?? 0)} %`,
    sparkline(shares, { least: 0, most: 1 }),
    field.distinct === null ? '' : `about ${grouped(field.distinct)}`,
    rangeWords(field),
  ];
}

/** The kinds, most frequent first, with their share unless there is only one. */
function kindWords({ kinds, filled }: Field): string {
  const found = Object.entries(kinds).sort(([, a], [, b]) => b - a);
  if (found.length === 0) return 'empty';
  if (found.length === 1) return found.map(([kind]) => kind).join('');
  return found.map(([kind, count]) => `${kind} ${percentWords(count / filled)} %`).join(', ');
}

function rangeWords({ min, max, shortest, longest, earliest, latest }: Field): string {
  const words = (from: unknown, to: unknown) => (from === to ? `${from}` : `${from} to ${to}`);
  if (min !== null) return words(min, max);
  if (earliest !== null) return words(earliest, latest);
  if (shortest === null) return '';
  return `${words(shortest, longest)} ${longest === 1 ? 'character' : 'characters'}`;
}

/** Of all and of none only if that is exact. */
function percentWords(share: number): string {
  const percent = Math.round(share * 1_000) / 10;
  if (percent === 100 && share < 1) return '99.9';
  return percent === 0 && share > 0 ? '0.1' : String(percent);
}
