/** `flowhook teams`: lists and creates teams, and sets their quotas. */
import { type OwnQuotas, parseQuota, QUOTAS, type Quota } from '../../model/quota.ts';
import { isTeamSlug, type Team } from '../../model/team.ts';
import { bytesWords, countWords, grouped, parseSize } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { everyRow } from '../../store/page.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { addStoreOptions, withStore } from '../open.ts';
import type { Options } from '../options.ts';
import { findTeams } from '../target.ts';
import { columns, print, say, table } from '../terminal.ts';
import { addDeleteTeam } from './delete-team.ts';

export function addTeams(program: Command): void {
  const teams = program.command('teams').description('list, create and delete teams, and set their quotas');
  addStoreOptions(
    teams
      .command('list')
      .description('list teams with their numbers of workflows and usable API keys')
      .withExamples('teams list'),
  ).action(listTeams);
  addStoreOptions(
    teams
      .command('create')
      .description('create a team; an existing team is not changed')
      .withExamples('teams create acme')
      .argument(
        '<slug>',
        'slug of the team (a–z, 0–9 and -), which also names the directory of its workflow files',
      ),
  ).action(createTeam);
  addTeamQuotas(teams);
  addDeleteTeam(teams);
}

async function listTeams(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store) => {
    const shown = [];
    for await (const { id, slug, createdAt } of everyRow(store.teams.list, {})) {
      const { workflows, keys } = await store.teams.holdings({ teamId: id });
      shown.push({ id, slug, createdAt: toIso(createdAt), workflows, keys });
    }
    const rows = shown.map(({ slug, id, createdAt, workflows, keys }) => [
      slug,
      countWords(workflows, 'workflow'),
      countWords(keys, 'key'),
      createdAt,
      id,
    ]);
    const heads = ['team', 'workflows', 'keys', 'created', 'id'].map((name) => ({ name }));
    print(options, shown, table(rows, process.stdout.columns, heads));
  });
}

async function createTeam(slug: string, options: Options): Promise<void> {
  if (!isTeamSlug(slug)) {
    throw new UsageError(
      `The slug must be 1 to 63 characters of a–z, 0–9 and -, beginning with a letter or digit, found "${slug}"`,
    );
  }
  await withStore(options, { make: true }, async (store) => {
    const isThere = (await store.teams.bySlug({ slug })) !== undefined;
    const team = await store.teams.ensure({ slug });
    print(options, { id: team.id, slug, created: !isThere }, [team.id]);
    say(
      isThere
        ? `The team "${slug}" already exists`
        : `Next, create a key with \`flowhook keys create --team ${slug}\`, and write workflows to ${slug}/<id>.yaml`,
    );
  });
}

function addTeamQuotas(teams: Command): void {
  addStoreOptions(
    teams
      .command('quotas')
      .description('show the quotas of teams and their usage')
      .withExamples('teams quotas', 'teams quotas acme')
      .argument('[slug]', 'slug of a team, as `flowhook teams list` shows it (default: all teams)'),
  ).action(showQuotas);
  addStoreOptions(
    teams
      .command('set-quota')
      .description('set a quota of a team; a running server applies it immediately')
      .withExamples(
        'teams set-quota acme records 1000000',
        'teams set-quota acme storedBytes 10GB',
        'teams set-quota acme workflows default',
      )
      .argument('<slug>', 'slug of the team, as `flowhook teams list` shows it')
      .argument('<quota>', `one of ${QUOTAS.join(', ')}`)
      .argument(
        '<limit>',
        'a whole number (for storedBytes also a size such as 10GB), off for no limit, or default for the value in the settings',
      ),
  ).action(setQuota);
}

interface Shown {
  team: string;
  quota: Quota;
  has: number;
  /** null: no limit. */
  most: number | null;
  own: boolean;
}

async function showQuotas(slug: string | undefined, options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store, config) => {
    const shown: Shown[] = [];
    for (const { id: teamId, slug: team } of await findTeams(store, slug)) {
      const own = await store.teams.quotas({ teamId });
      const most = { ...config.quotas, ...own };
      const has = await store.teams.holdings({ teamId });
      for (const quota of QUOTAS) {
        shown.push({ team, quota, has: has[quota], most: most[quota], own: quota in own });
      }
    }
    print(
      options,
      shown,
      columns(
        shown.map(({ team, quota, has, most, own }) => [
          team,
          quota,
          amount(quota, has),
          most === null ? 'no limit' : `of ${amount(quota, most)}`,
          own ? 'set for this team' : '',
        ]),
      ),
    );
  });
}

async function setQuota(slug: string, name: string, text: string, options: Options): Promise<void> {
  const quota = QUOTAS.find((one) => one === name);
  if (quota === undefined) {
    throw new UsageError(`The quota must be one of ${QUOTAS.join(', ')}, found "${name}"`);
  }
  // A size without a unit is a number of bytes.
  const most = parseQuota(quota === 'storedBytes' ? String(parseSize(text) ?? text) : text);
  if (most === 'mistake') {
    const size = quota === 'storedBytes' ? 'a size such as 10GB, ' : '';
    throw new UsageError(`The limit must be a whole number, ${size}off or default, found "${text}"`);
  }
  if (quota === 'runningJobs' && most === null) {
    throw new UsageError('The limit of runningJobs must be a number or default: a node always has a limit');
  }
  await withStore(options, { make: false }, async (store) => {
    const [team] = (await findTeams(store, slug)) as [Team];
    const { [quota]: _before, ...others } = await store.teams.quotas({ teamId: team.id });
    const quotas: OwnQuotas = most === undefined ? others : { ...others, [quota]: most };
    await store.teams.setQuotas({ teamId: team.id, quotas });
    const words = most === undefined ? 'default' : most === null ? 'no limit' : amount(quota, most);
    print(options, { team: slug, quotas }, [`${slug}: ${quota} ${words}`]);
  });
}

function amount(quota: Quota, count: number): string {
  return quota === 'storedBytes' ? bytesWords(count) : grouped(count);
}
