/** Settings as flags of a command. */
import { type Command, Option } from 'commander';
import { type Config, readConfig } from '../config/config.ts';
import { type NamedSetting, SETTINGS, type SettingName, settingsByGroup } from '../config/settings.ts';
import { environmentName, flagName } from '../config/sources.ts';

/** The options of a command, as commander passes them. */
export type Options = Record<string, unknown>;

/** Adds flags for some settings. Secrets have none: others on the machine can read a command line. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const setting of SETTINGS.filter(hasFlag)) {
    if (names.includes(setting.name)) command.addOption(optionOf(setting));
  }
  return command;
}

/** Adds flags for all settings but secrets, under the titles of their groups. */
export function addAllSettings(command: Command): Command {
  for (const { title, settings } of settingsByGroup()) {
    for (const setting of settings.filter(hasFlag)) {
      command.addOption(optionOf(setting).helpGroup(`${title}:`));
    }
  }
  return command;
}

function hasFlag(setting: NamedSetting): boolean {
  return setting.secret !== true;
}

function optionOf({ name, placeholder, sentence, ...setting }: NamedSetting): Option {
  const preset = setting.default ?? setting.byDefault;
  return new Option(
    `${flagName(name)} <${placeholder}>`,
    sentence + (preset === undefined ? '' : ` (default: ${preset})`),
  );
}

/** The help for settings that have no flag. */
export function secretSettingsHelp(): string {
  const lines = SETTINGS.filter((setting) => !hasFlag(setting)).map(
    ({ name, sentence, byDefault }) =>
      `  ${environmentName(name)}\n      ${sentence} (default: ${byDefault})`,
  );
  return [
    '',
    'Secrets have no flag. They come from the environment, or from the file that the same name with _FILE names:',
    ...lines,
  ].join('\n');
}

/** The settings from flags, environment and `flowhook.yaml`. @throws ConfigError */
export function configOf(options: Options): Config {
  const given = SETTINGS.filter(({ name }) => options[name] !== undefined);
  return readConfig(Object.fromEntries(given.map(({ name }) => [name, String(options[name])])));
}
