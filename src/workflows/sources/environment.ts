/** What a child process finds around it: a clean environment and its program. */
import { access, constants, stat } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { missingSecret, secretReferences } from '../secret-names.ts';

const KEPT = ['HOME', 'LANG', 'TZ', 'USER'];
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * The few variables of the server that a child gets, and nothing else: the server's own settings hold secrets.
 * The folder of this Node comes last in PATH, so that `node` is always found.
 */
export function cleanEnvironment(server: ReadonlyMap<string, string>): Record<string, string> {
  const kept = [...server].filter(([name]) => KEPT.includes(name) || name.startsWith('LC_'));
  return {
    ...Object.fromEntries(kept),
    PATH: `${server.get('PATH') || DEFAULT_PATH}${delimiter}${dirname(process.execPath)}`,
  };
}

/** Tells a child which run it is. */
export function runEnvironment(run: {
  workflowId: string;
  jobId: string;
  attempt: number;
}): Record<string, string> {
  return {
    FLOWHOOK_WORKFLOW: run.workflowId,
    FLOWHOOK_JOB: run.jobId,
    FLOWHOOK_ATTEMPT: String(run.attempt),
  };
}

interface TeamSecrets {
  team: string;
  secrets: ReadonlyMap<string, string>;
}

/** Puts secrets in the place of `${secret.NAME}`. Throws a sentence that says how to set a missing one. */
export function withSecrets(
  env: Readonly<Record<string, string>>,
  input: TeamSecrets,
): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value, input)]));
}

/** Does the same in every text of a configuration. */
export function configWithSecrets(config: unknown, input: TeamSecrets): unknown {
  if (typeof config === 'string') return fill(config, input);
  if (Array.isArray(config)) return config.map((value) => configWithSecrets(value, input));
  if (typeof config !== 'object' || config === null) return config;
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, configWithSecrets(value, input)]),
  );
}

/** The values of the secrets that a configuration names. */
export function secretsIn(config: unknown, secrets: ReadonlyMap<string, string>): string[] {
  const named = JSON.stringify(config).matchAll(secretReferences());
  return [...new Set([...named].flatMap(([, name = '']) => secrets.get(name) ?? []))];
}

function fill(text: string, input: TeamSecrets): string {
  return text.replace(secretReferences(), (_reference, name: string) => {
    const value = input.secrets.get(name);
    if (value === undefined) throw new Error(missingSecret(input.team, name));
    return value;
  });
}

/**
 * The full path of a program: one with a slash is relative to the directory, another is looked for in PATH.
 * Throws a sentence when there is none that can be run.
 */
export async function findProgram(name: string, input: { directory: string; path: string }): Promise<string> {
  const candidates = name.includes('/')
    ? [resolve(input.directory, name)]
    : input.path.split(delimiter).map((folder) => join(resolve(input.directory, folder), name));
  let found: string | undefined;
  for (const candidate of candidates) {
    const stats = await stat(candidate).catch(() => undefined);
    if (stats === undefined) continue;
    found ??= stats.isDirectory()
      ? `${candidate} is a directory`
      : `${candidate} is not executable (chmod +x)`;
    if (!stats.isFile()) continue;
    const runs = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return candidate;
  }
  if (found !== undefined) throw new Error(`The command ${name} cannot be run: ${found}`);
  throw new Error(
    name.includes('/')
      ? `The command ${name} does not exist: there is no ${candidates[0]}`
      : `The command ${name} was not found. Looked in PATH: ${input.path}. Install it, or give its path`,
  );
}

/** Throws a sentence when the directory of a definition is not there. */
export async function requireDirectory(directory: string): Promise<void> {
  const stats = await stat(directory).catch(() => undefined);
  if (!stats?.isDirectory()) {
    throw new Error(
      `The directory ${directory}, in which this workflow runs, does not exist on this machine`,
    );
  }
}
