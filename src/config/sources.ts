/**
 * Collects the settings from their sources. Command-line flags override environment variables, which override
 * `flowhook.yaml`, which overrides the defaults.
 */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { nearest } from '../std/nearest.ts';
import { yaml } from '../std/yaml.ts';
import { type NamedSetting, SETTINGS, type SettingName } from './settings.ts';

/** The text of a setting, and the source that it was read from. */
export interface Found {
  value: string;
  /** The source, in the user's terms: `--port`, `FLOWHOOK_PORT`, `flowhook.yaml: port`, `default`. */
  origin: string;
}

export interface Sources {
  /** The command-line flags, by setting name. */
  flags: Partial<Record<SettingName, string>>;
  environment: NodeJS.ProcessEnv;
  /** The directory of `flowhook.yaml`. Relative paths start from it. */
  directory: string;
}

/** @param mistakes receives a sentence for each unreadable file and each unknown name */
export function collect(
  { flags, environment, directory }: Sources,
  mistakes: string[],
): Map<SettingName, Found> {
  const found = new Map<SettingName, Found>();
  const file = readSettingsFile(resolve(directory, 'flowhook.yaml'), mistakes);
  for (const setting of SETTINGS) {
    const { name } = setting;
    const variable = environmentName(name);
    const fromEnvironment = environment[variable];
    const fromFile = environment[`${variable}_FILE`];
    if (flags[name] !== undefined) {
      found.set(name, { value: flags[name], origin: flagName(name) });
    } else if (fromEnvironment !== undefined && fromEnvironment !== '') {
      found.set(name, { value: fromEnvironment, origin: variable });
    } else if (holdsSecret(setting) && fromFile !== undefined && fromFile !== '') {
      const value = readSecretFile(resolve(directory, fromFile), `${variable}_FILE`, mistakes);
      if (value !== undefined) found.set(name, { value, origin: `${variable}_FILE` });
    } else if (file.has(name)) {
      found.set(name, { value: file.get(name) ?? '', origin: `flowhook.yaml: ${name}` });
    } else if (setting.default !== undefined) {
      found.set(name, { value: setting.default, origin: 'default' });
    }
  }
  return found;
}

function readSecretFile(path: string, variable: string, mistakes: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    mistakes.push(`${variable} names a file that cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

function readSettingsFile(path: string, mistakes: string[]): Map<string, string> {
  const settings = new Map<string, string>();
  if (!existsSync(path)) return settings;
  let content: unknown;
  try {
    content = yaml().parse(readFileSync(path, 'utf8')) ?? {};
  } catch (error) {
    // Only the first line of the parser's message is used, because the other lines quote the file.
    const [what] = (error as Error).message.split(/:?\n/);
    mistakes.push(`flowhook.yaml cannot be read: ${what}`);
    return settings;
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    mistakes.push('flowhook.yaml must be a map of settings');
    return settings;
  }
  const names: string[] = SETTINGS.map((setting) => setting.name);
  for (const [name, value] of Object.entries(content)) {
    if (!names.includes(name)) {
      const meant = nearest(name, names);
      const advice =
        meant === undefined ? `The settings are: ${names.join(', ')}` : `Did you mean "${meant}"?`;
      mistakes.push(`flowhook.yaml: "${name}" is not a setting. ${advice}`);
    } else if (typeof value === 'object' && !Array.isArray(value)) {
      mistakes.push(`flowhook.yaml: ${name} must be a single value`);
    } else {
      settings.set(name, String(value));
    }
  }
  return settings;
}

/** `publicUrl` → `FLOWHOOK_PUBLIC_URL`. */
export function environmentName(name: string): string {
  return `FLOWHOOK_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** `publicUrl` → `--public-url`. */
export function flagName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Whether the value is never shown, and may be in a file named by `<variable>_FILE`. */
export function holdsSecret(setting: Pick<NamedSetting, 'secret' | 'mayHoldSecret'>): boolean {
  return setting.secret === true || setting.mayHoldSecret === true;
}

/** Variables that the service sets for the processes of runs. */
const RUN_VARIABLES = ['FLOWHOOK_WORKFLOW', 'FLOWHOOK_JOB', 'FLOWHOOK_ATTEMPT'];
/** Variables with which a command finds a server. */
const SERVER_VARIABLES = ['FLOWHOOK_URL', 'FLOWHOOK_KEY', 'FLOWHOOK_PROFILE'];

/**
 * Returns a warning for each variable that looks like a misspelled setting. Variables without a similar name are
 * ignored, because other programs also set variables that begin with `FLOWHOOK_`: Kubernetes does so for a service
 * named flowhook.
 */
export function misspelledVariables(environment: ReadonlyMap<string, string>): string[] {
  const names = SETTINGS.map(({ name }) => environmentName(name));
  const files = SETTINGS.filter(holdsSecret).map(({ name }) => `${environmentName(name)}_FILE`);
  const known = [...names, ...files, ...RUN_VARIABLES, ...SERVER_VARIABLES];
  const ending = (variable: string) => variable.slice('FLOWHOOK_'.length);
  return [...environment.keys()].flatMap((variable) => {
    if (!variable.startsWith('FLOWHOOK_') || variable.startsWith('FLOWHOOK_SECRET__')) return [];
    if (known.includes(variable)) return [];
    const plain = variable.replace(/_FILE$/, '');
    if (names.includes(plain)) {
      return [`${variable} has no effect: only secrets can come from a file. Set ${plain} instead.`];
    }
    const meant = nearest(ending(variable), [...names, ...files].map(ending));
    if (meant === undefined) return [];
    return [`${variable} is not a setting and has no effect. Did you mean FLOWHOOK_${meant}?`];
  });
}
