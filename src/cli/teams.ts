/** `flowhook teams`: lists and creates the teams that share this instance. */

import type { Command } from 'commander';
import { isTeamSlug } from '../model/team.ts';
import { countWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { everyRow } from '../store/page.ts';
import { addDeleteTeam } from './delete-team.ts';
import { UsageError } from './exit.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { say } from './say.ts';
import type { Options } from './settings.ts';
import { columns } from './table.ts';
import { addTeamQuotas } from './team-quotas.ts';

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
