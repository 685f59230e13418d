/** Collects settings: flags win over the environment, that over `flowhook.yaml`, that over the defaults. */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { nearest } from '../std/nearest.ts';
import { yaml } from '../std/yaml.ts';
import { environmentName, flagName, holdsSecret } from './names.ts';
import { SETTINGS, type SettingName } from './settings.ts';

/** A setting as it was written in one of the sources. */
export interface Found {
  value: string;
  /** The source as users know it: `--port`, `FLOWHOOK_PORT`, `flowhook.yaml: port`, `default`. */
  origin: string;
}

export interface Sources {
  /** The flags of the command line, by setting name. */
  flags: Partial<Record<SettingName, string>>;
  environment: NodeJS.ProcessEnv;
  /** Where `flowhook.yaml` may be, and what paths are relative to. */
  directory: string;
}

/** @param mistakes gets a sentence for each unreadable file and each unknown name */
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
    // The first line of the message; the others quote the file.
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
      const advice = meant === undefined ? `There are: ${names.join(', ')}` : `Did you mean "${meant}"?`;
      mistakes.push(`flowhook.yaml: "${name}" is not a setting. ${advice}`);
    } else if (typeof value === 'object' && !Array.isArray(value)) {
      mistakes.push(`flowhook.yaml: ${name} must be a single value`);
    } else {
      settings.set(name, String(value));
    }
  }
  return settings;
}
