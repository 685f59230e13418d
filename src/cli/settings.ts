/** Settings as flags of a command. */
import type { Command } from 'commander';
import { type Config, readConfig } from '../config/config.ts';
import { environmentName, flagName } from '../config/names.ts';
import { SETTINGS, type SettingName } from '../config/settings.ts';

/** What a command is called with, as commander hands it over. */
export type Options = Record<string, unknown>;

/** Adds flags for settings. Secrets get none: a command line can be read by others on the machine. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const setting of SETTINGS) {
    if (!names.includes(setting.name) || setting.secret === true) continue;
    const value = setting.value === undefined ? '' : ` <${setting.value}>`;
    const preset = setting.default ?? setting.byDefault;
    const withDefault = preset === undefined || value === '' ? '' : ` (default: ${preset})`;
    command.option(flagName(setting.name) + value, setting.sentence + withDefault);
  }
  return command;
}

/** What the help says of the settings that have no flag. */
export function secretSettingsHelp(): string {
  const lines = SETTINGS.filter((setting) => setting.secret === true).map(
    ({ name, sentence, byDefault }) =>
      `  ${environmentName(name)}\n      ${sentence} (default: ${byDefault})`,
  );
  return [
    '',
    'Secrets have no flag. They come from the environment, or from the file that the same name with _FILE names:',
    ...lines,
  ].join('\n');
}

/** The settings as flags, environment and file say. */
export function configOf(options: Options): Config {
  return readConfig(flagsOf(options));
}

/** What of the options are settings. */
export function flagsOf(options: Options): Partial<Record<SettingName, string>> {
  return Object.fromEntries(
    SETTINGS.filter(({ name }) => options[name] !== undefined).map(({ name }) => [
      name,
      String(options[name]),
    ]),
  );
}
