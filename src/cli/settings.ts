/** Settings as flags of a command. */
import type { Command } from 'commander';
import {
  type Config,
  environmentName,
  flagName,
  holdsSecret,
  readConfig,
  SETTINGS,
  type SettingName,
} from '../config.ts';
import { nearest } from '../std/nearest.ts';

/** What a command is called with, as commander hands it over. */
export type Options = Record<string, unknown>;

/** Adds flags for settings. Secrets get none: a command line can be read by others on the machine. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const setting of SETTINGS) {
    if (!names.includes(setting.name) || 'secret' in setting) continue;
    const value = 'value' in setting ? ` <${setting.value}>` : '';
    const preset = setting.default === undefined || value === '' ? '' : ` (default: ${setting.default})`;
    command.option(flagName(setting.name) + value, setting.sentence + preset);
  }
  return command;
}

/** What the help says of the settings that have no flag. */
export function secretSettingsHelp(): string {
  const lines = SETTINGS.flatMap((setting) =>
    'secret' in setting ? [`  ${environmentName(setting.name)}\n      ${setting.sentence}`] : [],
  );
  return [
    '',
    'Secrets have no flag. They come from the environment, or from the file that the same name with _FILE names:',
    ...lines,
  ].join('\n');
}

/** The settings as flags, environment and file say. */
export function configOf(options: Options): Config {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const { name } of SETTINGS) {
    if (options[name] !== undefined) flags[name] = String(options[name]);
  }
  return readConfig(flags);
}

/** What runs are told by the service, and no setting of it. */
const OF_RUNS = ['FLOWHOOK_WORKFLOW', 'FLOWHOOK_JOB', 'FLOWHOOK_ATTEMPT'];
/** What commands are told that ask a server. */
const OF_COMMANDS = ['FLOWHOOK_URL', 'FLOWHOOK_KEY', 'FLOWHOOK_PROFILE'];

/**
 * A sentence for each variable that looks like a misspelt setting. Near misses only, and never a refusal: other
 * programs, and Kubernetes for a service of that name, set variables that begin with `FLOWHOOK_` as well.
 */
export function misspeltVariables(environment: ReadonlyMap<string, string>): string[] {
  const known = SETTINGS.flatMap((setting) => {
    const variable = environmentName(setting.name);
    return holdsSecret(setting) ? [variable, `${variable}_FILE`] : [variable];
  });
  const ending = (variable: string) => variable.slice('FLOWHOOK_'.length);
  return [...environment.keys()].flatMap((variable) => {
    if (!variable.startsWith('FLOWHOOK_') || variable.startsWith('FLOWHOOK_SECRET__')) return [];
    if (known.includes(variable) || [...OF_RUNS, ...OF_COMMANDS].includes(variable)) return [];
    const meant = nearest(ending(variable), known.map(ending));
    if (meant === undefined) return [];
    return [`${variable} is no setting and has no effect. Did you mean FLOWHOOK_${meant}?`];
  });
}
