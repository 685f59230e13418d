/**
 * Finds the server for a command: from flags, or from a profile that `flowhook login` saved in a file that only the
 * user can read.
 */
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { urlMistake } from '../model/webhook.ts';
import { makeDirectory } from '../std/make-directory.ts';
import { nearest } from '../std/nearest.ts';
import { NotFoundError, UsageError } from './exit.ts';
import { databaseFile } from './open.ts';
import { configOf, type Options } from './options.ts';
import { say } from './terminal.ts';

export const DEFAULT_PROFILE = 'default';

/**
 * Returns the server from flags, environment or a named profile. If none of them is given and there is no local
 * database, returns the server of the default profile.
 */
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
  // Without a local database, the user probably means the server of `flowhook login`.
  const database = databaseFile(config);
  if (database === undefined || existsSync(database)) return undefined;
  const profile = readProfiles(file)[DEFAULT_PROFILE];
  if (profile !== undefined) say(`Using ${profile.url} (profile ${DEFAULT_PROFILE})`);
  return profile;
}

/** @throws UsageError when no API key is set */
export function keyOf(options: Options, environment: ReadonlyMap<string, string>): string {
  const key = options.key ?? environment.get('FLOWHOOK_KEY');
  if (key !== undefined) return String(key);
  throw new UsageError(
    'The server needs an API key: pass one with --key or FLOWHOOK_KEY. To create a key, run `flowhook keys create` on the server',
  );
}

function profileOf(file: string | undefined, name: string): Profile {
  const profiles = readProfiles(file);
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found !== undefined) return found;
  const meant = nearest(name, Object.keys(profiles));
  throw new NotFoundError(
    `There is no profile "${name}". ${meant === undefined ? `Create it with \`flowhook login URL --profile ${name}\`` : `Did you mean ${meant}?`}`,
  );
}

export interface Profile {
  url: string;
  key: string;
}

/** `$XDG_CONFIG_HOME/flowhook/profiles.json`, by default under `~/.config`; undefined without a home directory. */
export function profilesFile(environment: ReadonlyMap<string, string>): string | undefined {
  const directory = environment.get('XDG_CONFIG_HOME') || join(homeDirectory(), '.config');
  return isAbsolute(directory) ? join(directory, 'flowhook', 'profiles.json') : undefined;
}

/** Returns an empty string for a user without a home directory. */
function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    // Neither HOME is set, nor does the system know this user.
    return '';
  }
}

/** @throws Error with advice when the file is not valid JSON */
export function readProfiles(file: string | undefined): Record<string, Profile> {
  if (file === undefined || !existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new Error(
      `${file} cannot be read: ${(cause as Error).message}. Correct the file, or delete it and log in again`,
      { cause },
    );
  }
}

/**
 * Replaces the file atomically.
 *
 * @throws UsageError without a file
 */
export function writeProfiles(file: string | undefined, profiles: Readonly<Record<string, Profile>>): void {
  if (file === undefined) {
    throw new UsageError(
      'Profiles are stored in the home directory, but this user has none. Set HOME or XDG_CONFIG_HOME to the absolute path of a directory',
    );
  }
  makeDirectory(dirname(file));
  const part = `${file}.${process.pid}`;
  writeFileSync(part, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  // If a crash left this file behind, overwriting the file keeps its old mode, so the mode is set again.
  chmodSync(part, 0o600);
  renameSync(part, file);
}
