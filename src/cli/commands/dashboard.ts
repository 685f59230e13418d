/** `flowhook dashboard`: prints a link that signs in to the dashboard. Needs the database, not a key. */
import type { Command } from 'commander';
import { type ApiKey, allows, isUsable, type Team } from '../../model/team.ts';
import { browsableUrl } from '../../net/host.ts';
import { toIso } from '../../std/clock.ts';
import { everyRow } from '../../store/page.ts';
import type { Store } from '../../store/store.ts';
import { linkUrl, makeLink } from '../../teams/sessions.ts';
import { NotFoundError } from '../exit.ts';
import { addStoreOptions, withStore } from '../open.ts';
import { addSettings, type Options } from '../options.ts';
import { findTeams } from '../target.ts';
import { print, say } from '../terminal.ts';

export function addDashboard(program: Command): void {
  const command = program
    .command('dashboard')
    .description('print a link that signs in to the dashboard once, within 30 minutes')
    .option('--team <slug>', 'whose dashboard it is (default: default)')
    .option('--key-id <id>', 'the key to sign in with (default: the key of the team with the most scopes)');
  addSettings(addStoreOptions(command), ['host', 'port', 'publicUrl']).action(printLink);
}

async function printLink(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store, config) => {
    const { slug, key } = await chosenKey(store, options);
    const link = await makeLink(store, { keyId: key.id });
    if (link === undefined) throw new NotFoundError(`The key ${key.id} can no longer be used`);
    const url = linkUrl(
      config.publicUrl ?? browsableUrl({ ...config, isSecure: config.tlsCert !== undefined }),
      link.token,
    );
    say(`Signs in once, within 30 minutes, to team ${slug} with the scopes of key ${key.id}:`);
    print(options, { url, expiresAt: toIso(link.expiresAt), team: slug, keyId: key.id }, [url]);
  });
}

/** @throws NotFoundError when there is no such team or key, or none that can be used */
async function chosenKey(
  store: Store,
  { team: wanted, keyId }: Options,
): Promise<{ slug: string; key: ApiKey }> {
  const teams = await Array.fromAsync(everyRow(store.teams.list, {}));
  const usable = (await Array.fromAsync(everyRow(store.keys.list, {}))).filter((key) =>
    isUsable(key, store.now()),
  );
  if (keyId !== undefined) {
    const key = usable.find(({ id }) => id === keyId);
    const team = teams.find(({ id }) => id === key?.teamId);
    if (key === undefined || team === undefined || (wanted ?? team.slug) !== team.slug) {
      throw new NotFoundError(
        `No key "${keyId}" found that can be used${wanted === undefined ? '' : ` and is of team "${wanted}"`}. ` +
          '`flowhook keys list` shows them',
      );
    }
    return { slug: team.slug, key };
  }
  const [team] = (await findTeams(store, wanted ?? 'default')) as [Team];
  const { slug } = team;
  const [key] = usable.filter(({ teamId }) => teamId === team.id).sort(moreScopesFirst);
  if (key === undefined) {
    throw new NotFoundError(
      `Team "${slug}" has no key that can be used. \`flowhook keys create --team ${slug} --scopes admin\` makes one`,
    );
  }
  return { slug, key };
}

/** Among keys with equal rights, the oldest first. */
function moreScopesFirst(one: ApiKey, other: ApiKey): number {
  const rank = ({ scopes }: ApiKey) =>
    allows(scopes, 'operator') ? 100 : allows(scopes, 'admin') ? 99 : scopes.length;
  return rank(other) - rank(one) || one.createdAt - other.createdAt;
}
