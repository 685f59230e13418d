/** `flowhook login|logout|profiles`: saves servers and their keys, so that commands can name them. */
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { urlMistake } from '../../model/webhook.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { configOf, type Options } from '../options.ts';
import { DEFAULT_PROFILE, profilesFile, readProfiles, writeProfiles } from '../profiles.ts';
import { columns } from '../table.ts';
import { print, say } from '../terminal.ts';

export function addLogin(program: Command): void {
  program
    .command('login')
    .description('save a server and its key, which commands then use where there is no database')
    .argument('<url>', 'where the server is')
    .option('--key <key>', 'an API key (default: FLOWHOOK_KEY, else it is read from standard input)')
    .option('--profile <name>', `what to call it (default: ${DEFAULT_PROFILE})`)
    .option('--json', 'print JSON')
    .action(login);
  program
    .command('logout')
    .description('forget a server and its key')
    .option('--profile <name>', `which (default: ${DEFAULT_PROFILE})`)
    .option('--json', 'print JSON')
    .action(logout);
  program
    .command('profiles')
    .description('list the saved servers, without their keys')
    .option('--json', 'print JSON')
    .action(listProfiles);
}

async function login(url: string, options: Options): Promise<void> {
  const mistake = urlMistake(url)?.replace('`webhookUrl`', 'The URL');
  if (mistake !== undefined) throw new UsageError(mistake);
  const { environment } = configOf({});
  const key = String(options.key ?? environment.get('FLOWHOOK_KEY') ?? (await askedKey()));
  const { Flowhook } = await import('flowhook-client');
  // Before saving: a key that is refused would be of no use.
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
  print(options, { profile: name, forgotten: true }, [`forgot ${name}`]);
  say('The key is still valid: `flowhook keys revoke` on the server revokes it');
}

async function listProfiles(options: Options): Promise<void> {
  const profiles = Object.entries(readProfiles(profilesFile(configOf({}).environment)));
  print(
    options,
    profiles.map(([profile, { url }]) => ({ profile, url })),
    columns(profiles.map(([profile, { url }]) => [profile, url])),
  );
  if (profiles.length === 0) say('There are none yet: `flowhook login URL` makes one');
}

/** Reads a line from standard input; on a terminal it is not echoed. */
async function askedKey(): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY === true) say('The API key (it is not shown):');
  const lines = createInterface({ input: stdin, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) if (line.trim() !== '') return line.trim();
  } finally {
    lines.close();
  }
  throw new UsageError('The server needs an API key: give it with --key, FLOWHOOK_KEY or on standard input');
}
