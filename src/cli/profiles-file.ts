/** The servers saved by `flowhook login`, in a file that only the user can read. */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Profile {
  url: string;
  key: string;
}

/** `$XDG_CONFIG_HOME/flowhook/profiles.json`, by default under `~/.config`. */
export function profilesFile(environment: ReadonlyMap<string, string>): string {
  const given = environment.get('XDG_CONFIG_HOME');
  return join(given || join(homedir(), '.config'), 'flowhook', 'profiles.json');
}

/** @throws Error with a sentence when the file is not valid JSON */
export function readProfiles(file: string): Record<string, Profile> {
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new Error(
      `${file} cannot be read: ${(cause as Error).message}. Mend it, or delete it and log in again`,
      {
        cause,
      },
    );
  }
}

/** Replaces the file atomically. */
export function writeProfiles(file: string, profiles: Readonly<Record<string, Profile>>): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const part = `${file}.${process.pid}`;
  writeFileSync(part, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  // A file left by a crash keeps its mode when it is overwritten.
  chmodSync(part, 0o600);
  renameSync(part, file);
}
