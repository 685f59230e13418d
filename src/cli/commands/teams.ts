/** `flowhook teams`: lists and creates the teams that share this instance, and sets their quotas. */
import type { Command } from 'commander';
import { type OwnQuotas, parseQuota, QUOTAS, type Quota } from '../../model/quota.ts';
import { isTeamSlug, type Team } from '../../model/team.ts';
import { bytesWords, countWords, parseSize } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { everyRow } from '../../store/page.ts';
import { UsageError } from '../exit.ts';
import { addStoreOptions, withStore } from '../open.ts';
import type { Options } from '../options.ts';
import { findTeams } from '../target.ts';
import { columns, print, say } from '../terminal.ts';
import { addDeleteTeam } from './delete-team.ts';

export function addTeams(program: Command): void {
  const teams = program.command('teams').description('teams: who shares this instance');
  addStoreOptions(
    teams.command('list').description('list teams with their number of workflows and usable keys'),
  ).action(listTeams);
  addStoreOptions(
    teams
      .command('create')
      .description('create a team; an existing one stays as it is')
      .argument('<slug>', 'a–z, 0–9 and -, also the name of its folder of workflow files'),
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
    print(
      options,
      shown,
      columns(
        shown.map(({ slug, id, createdAt, workflows, keys }) => [
          slug,
          countWords(workflows, 'workflow'),
          countWords(keys, 'key'),
          createdAt,
          id,
        ]),
      ),
    );
  });
}

async function createTeam(slug: string, options: Options): Promise<void> {
  if (!isTeamSlug(slug)) {
    throw new UsageError(
      `The slug must be 1 to 63 of a–z, 0–9 and -, beginning with a letter or digit, found "${slug}"`,
    );
  }
  await withStore(options, { make: true }, async (store) => {
    const isThere = (await store.teams.bySlug({ slug })) !== undefined;
    const team = await store.teams.ensure({ slug });
    print(options, { id: team.id, slug, created: !isThere }, [team.id]);
    say(
      isThere
        ? `There was a team "${slug}" already`
        : `Next: \`flowhook keys create --team ${slug}\`, and its workflows in ${slug}/<id>.yaml`,
    );
  });
}

export function addTeamQuotas(teams: Command): void {
  addStoreOptions(
    teams
      .command('quotas')
      .description('show the quotas of teams, and how much of them is used')
      .argument('[slug]', 'one team, as `flowhook teams list` shows it (default: all)'),
  ).action(showQuotas);
  addStoreOptions(
    teams
      .command('set-quota')
      .description('set a quota of a team; a running server applies it at once')
      .argument('<slug>', 'as `flowhook teams list` shows it')
      .argument('<quota>', QUOTAS.join(', '))
      .argument(
        '<most>',
        'a whole number (for storedBytes also a size such as 10GB), off for no limit, or default for what the settings allow every team',
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
          most === null ? 'of any number' : `of ${amount(quota, most)}`,
          own ? 'its own' : '',
        ]),
      ),
    );
  });
}

async function setQuota(slug: string, name: string, text: string, options: Options): Promise<void> {
  const quota = QUOTAS.find((one) => one === name);
  if (quota === undefined) throw new UsageError(`There is no quota "${name}": ${QUOTAS.join(', ')}`);
  // A number without a unit is bytes.
  const most = parseQuota(quota === 'storedBytes' ? String(parseSize(text) ?? text) : text);
  if (most === 'mistake') {
    const size = quota === 'storedBytes' ? 'a size such as 10GB, ' : '';
    throw new UsageError(`How many must be a whole number, ${size}off or default, found "${text}"`);
  }
  if (quota === 'runningJobs' && most === null) {
    throw new UsageError('A node runs no more jobs than it can: give runningJobs a number, or say default');
  }
  await withStore(options, { make: false }, async (store) => {
    const [team] = (await findTeams(store, slug)) as [Team];
    const { [quota]: _before, ...others } = await store.teams.quotas({ teamId: team.id });
    const quotas: OwnQuotas = most === undefined ? others : { ...others, [quota]: most };
    await store.teams.setQuotas({ teamId: team.id, quotas });
    const words =
      most === undefined ? 'what the settings allow' : (most?.toLocaleString('en-GB') ?? 'any number');
    print(options, { team: slug, quotas }, [`${slug}: ${quota} ${words}`]);
  });
}

function amount(quota: Quota, count: number): string {
  return quota === 'storedBytes' ? bytesWords(count) : count.toLocaleString('en-GB');
}
