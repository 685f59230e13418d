/** `flowhook login|logout|profiles|dashboard`: saves servers with their keys, and signs users in to the dashboard. */
import { createInterface } from 'node:readline/promises';
import { type ApiKey, allows, isUsable, type Team } from '../../model/team.ts';
import { urlMistake } from '../../model/webhook.ts';
import { browsableUrl } from '../../net/host.ts';
import { toIso } from '../../std/clock.ts';
import { everyRow } from '../../store/page.ts';
import type { Store } from '../../store/store.ts';
import { linkUrl, makeLink } from '../../teams/sessions.ts';
import type { Command } from '../command.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { addStoreOptions, withStore } from '../open.ts';
import { addSettings, configOf, type Options } from '../options.ts';
import { DEFAULT_PROFILE, profilesFile, readProfiles, writeProfiles } from '../profiles.ts';
import { findTeams } from '../target.ts';
import { columns, print, say } from '../terminal.ts';

export function addLogin(program: Command): void {
  program
    .command('login')
    .description(
      'save a server and an API key as a profile, which commands use on a machine without a database',
    )
    .withExamples(
      'login https://flowhook.example.com',
      'login http://127.0.0.1:8080 --profile local < key.txt',
    )
    .argument('<url>', 'URL of the server')
    .option('--key <key>', 'API key (default: FLOWHOOK_KEY, else standard input)')
    .option('--profile <name>', `name of the profile (default: ${DEFAULT_PROFILE})`)
    .option('--json', 'print JSON')
    .action(login);
  program
    .command('logout')
    .description('delete a saved server and its API key')
    .withExamples('logout', 'logout --profile local')
    .option('--profile <name>', `name of the profile (default: ${DEFAULT_PROFILE})`)
    .option('--json', 'print JSON')
    .action(logout);
  program
    .command('profiles')
    .description('list saved servers, without their API keys')
    .withExamples('profiles')
    .option('--json', 'print JSON')
    .action(listProfiles);
}

async function login(url: string, options: Options): Promise<void> {
  const mistake = urlMistake(url)?.replace('`webhookUrl`', 'The URL');
  if (mistake !== undefined) throw new UsageError(mistake);
  const { environment } = configOf({});
  const key = String(options.key ?? environment.get('FLOWHOOK_KEY') ?? (await askedKey()));
  const { Flowhook } = await import('../../../client/src/flowhook-client.ts');
  // If the key is invalid, this request fails before anything is saved.
  const { team, key: known } = await new Flowhook({ url, key }).me();
  const name = String(options.profile ?? DEFAULT_PROFILE);
  const file = profilesFile(environment);
  writeProfiles(file, { ...readProfiles(file), [name]: { url, key } });
  print(options, { profile: name, url, team: team.slug, scopes: known.scopes, file }, [
    `${name}  ${url}  team ${team.slug}, ${known.scopes.join(', ')}`,
  ]);
  say(`Saved in ${file}`);
}

async function logout(options: Options): Promise<void> {
  const name = String(options.profile ?? DEFAULT_PROFILE);
  const file = profilesFile(configOf({}).environment);
  const { [name]: gone, ...others } = readProfiles(file);
  if (gone === undefined) throw new NotFoundError(`There is no profile "${name}"`);
  writeProfiles(file, others);
  print(options, { profile: name, forgotten: true }, [`deleted ${name}`]);
  say('The API key is still valid. To revoke it, run `flowhook keys revoke` on the server');
}

async function listProfiles(options: Options): Promise<void> {
  const profiles = Object.entries(readProfiles(profilesFile(configOf({}).environment)));
  print(
    options,
    profiles.map(([profile, { url }]) => ({ profile, url })),
    columns(profiles.map(([profile, { url }]) => [profile, url])),
  );
  if (profiles.length === 0) say('There are no profiles yet. Create one with `flowhook login URL`');
}

/** Reads a line from standard input. A terminal does not show what the user types. */
async function askedKey(): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY === true) say('API key (not shown):');
  const lines = createInterface({ input: stdin, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) if (line.trim() !== '') return line.trim();
  } finally {
    lines.close();
  }
  throw new UsageError('The server needs an API key: pass it with --key, FLOWHOOK_KEY or standard input');
}

export function addDashboard(program: Command): void {
  const command = program
    .command('dashboard')
    .description('print a one-time link that signs in to the dashboard, valid for 30 minutes')
    .withExamples('dashboard', 'dashboard --team acme --public-url https://flowhook.example.com')
    .option('--team <slug>', 'team to sign in to (default: default)')
    .option('--key-id <id>', 'API key to sign in with (default: the key of the team with the most scopes)');
  addSettings(addStoreOptions(command), ['host', 'port', 'publicUrl']).action(printLink);
}

async function printLink(options: Options): Promise<void> {
  await withStore(options, { make: false }, async (store, config) => {
    const { slug, key } = await chosenKey(store, options);
    const link = await makeLink(store, { keyId: key.id });
    if (link === undefined) throw new NotFoundError(`The key ${key.id} is revoked or expired`);
    const url = linkUrl(
      config.publicUrl ?? browsableUrl({ ...config, isSecure: config.tlsCert !== undefined }),
      link.token,
    );
    say(
      `This link signs in to team ${slug} with the scopes of key ${key.id}. It works once, within 30 minutes:`,
    );
    print(options, { url, expiresAt: toIso(link.expiresAt), team: slug, keyId: key.id }, [url]);
  });
}

/** @throws NotFoundError if the team does not exist or has no usable key */
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
        `No usable key "${keyId}" found${wanted === undefined ? '' : ` in team "${wanted}"`}. ` +
          'To list keys, run `flowhook keys list`',
      );
    }
    return { slug: team.slug, key };
  }
  const [team] = (await findTeams(store, wanted ?? 'default')) as [Team];
  const { slug } = team;
  const [key] = usable.filter(({ teamId }) => teamId === team.id).sort(moreScopesFirst);
  if (key === undefined) {
    throw new NotFoundError(
      `Team "${slug}" has no usable key. Create one with \`flowhook keys create --team ${slug} --scopes admin\``,
    );
  }
  return { slug, key };
}

/** Sorts keys with more rights first, and keys with equal rights from oldest to newest. */
function moreScopesFirst(one: ApiKey, other: ApiKey): number {
  const rank = ({ scopes }: ApiKey) =>
    allows(scopes, 'operator') ? 100 : allows(scopes, 'admin') ? 99 : scopes.length;
  return rank(other) - rank(one) || one.createdAt - other.createdAt;
}
