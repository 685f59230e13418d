/** Chooses whether a command opens the database or asks a server over HTTP, and finds that server and its key. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Flowhook } from 'flowhook-client';
import { urlMistake } from '../model/webhook.ts';
import { nearest } from '../std/nearest.ts';
import { databaseFile } from './data-directory.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { type Profile, profilesFile, readProfiles } from './profiles-file.ts';
import { say } from './say.ts';
import { configOf, type Options } from './settings.ts';

export const DEFAULT_PROFILE = 'default';

/**
 * Adds the flags that name a server and an action that calls either `local` or `remote`, with the arguments of a
 * commander action.
 *
 * @param remote also gets the server
 */
export function orRemote<Arguments extends unknown[]>(
  command: Command,
  local: (...args: [...Arguments, Options]) => Promise<void>,
  remote: (server: Flowhook, ...args: [...Arguments, Options]) => Promise<void>,
): Command {
  return command
    .option('--url <url>', 'ask this server instead of the database (default: the variable FLOWHOOK_URL)')
    .option('--key <key>', 'its API key (default: the variable FLOWHOOK_KEY)')
    .option('--profile <name>', 'ask a server saved by `flowhook login` (or FLOWHOOK_PROFILE)')
    .action(async (...given: unknown[]) => {
      // Commander passes the arguments, the options and the command itself.
      const args = given.slice(0, -1) as [...Arguments, Options];
      const target = targetOf(args.at(-1) as Options);
      if (target === undefined) return local(...args);
      const { Flowhook } = await import('flowhook-client');
      return remote(new Flowhook(target), ...args);
    });
}

/** The server to ask; undefined when the database is meant. */
function targetOf(options: Options): Profile | undefined {
  const isLocal = options.data !== undefined || options.database !== undefined;
  const isRemote = options.url !== undefined || options.profile !== undefined;
  if (isLocal && isRemote) {
    throw new UsageError(
      '--data and --database name a database, --url and --profile a server: leave one out',
    );
  }
  if (isLocal) return undefined;
  const target = serverOf(options);
  if (target !== undefined && options.team !== undefined) {
    throw new UsageError(
      `A key speaks for its team: leave --team out, or name the database with --data. The server is ${target.url}`,
    );
  }
  return target;
}

/** The server named by flags, environment or a profile; otherwise, if there is no database, the default profile. */
export function serverOf(options: Options): Profile | undefined {
  const config = configOf(options);
  const { environment } = config;
  const name =
    options.profile ?? (options.url === undefined ? environment.get('FLOWHOOK_PROFILE') : undefined);
  const file = profilesFile(environment);
  if (name !== undefined) return profileOf(file, String(name));
  const url = options.url ?? environment.get('FLOWHOOK_URL');
  if (url !== undefined) {
    const mistake = urlMistake(url)?.replace('`webhookUrl`', '--url');
    if (mistake !== undefined) throw new UsageError(mistake);
    return { url: String(url), key: keyOf(options, environment) };
  }
  // Without a database, somebody who has logged in means that server.
  const database = databaseFile(config);
  if (database === undefined || existsSync(database)) return undefined;
  const profile = readProfiles(file)[DEFAULT_PROFILE];
  if (profile !== undefined) say(`Asking ${profile.url} (profile ${DEFAULT_PROFILE})`);
  return profile;
}

/** @throws UsageError when there is none */
export function keyOf(options: Options, environment: ReadonlyMap<string, string>): string {
  const key = options.key ?? environment.get('FLOWHOOK_KEY');
  if (key !== undefined) return String(key);
  throw new UsageError(
    'The server needs an API key: give it with --key or FLOWHOOK_KEY. `flowhook keys create` makes one there',
  );
}

/** A key belongs to one team: `acme/people` is `people` on a server. */
export function withoutTeam(workflow: string): string {
  return workflow.slice(workflow.indexOf('/') + 1);
}

function profileOf(file: string, name: string): Profile {
  const profiles = readProfiles(file);
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found !== undefined) return found;
  const meant = nearest(name, Object.keys(profiles));
  throw new NotFoundError(
    `There is no profile "${name}".${meant === undefined ? ` \`flowhook login URL --profile ${name}\` makes it` : ` Did you mean ${meant}?`}`,
  );
}
