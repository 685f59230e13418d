/** Settings as flags of a command. */
import type { Command } from 'commander';
import { type Config, flagName, readConfig, SETTINGS, type SettingName } from '../config.ts';

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

/** The settings as flags, environment and file say. */
export function configOf(options: Record<string, unknown>): Config {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const { name } of SETTINGS) {
    if (options[name] !== undefined) flags[name] = String(options[name]);
  }
  return readConfig(flags);
}
