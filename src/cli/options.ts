/** Command-line flags that override settings, and validation of their values. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Option } from 'commander';
import { type Config, readConfig } from '../config/config.ts';
import { type NamedSetting, SETTINGS, type SettingName, settingsByGroup } from '../config/settings.ts';
import { environmentName, flagName } from '../config/sources.ts';
import { parseIsoTime } from '../std/clock.ts';
import { nearest } from '../std/nearest.ts';
import type { Command } from './command.ts';
import { UsageError } from './exit.ts';

/** The options of a command, as commander passes them. */
export type Options = Record<string, unknown>;

/**
 * Adds flags for the named settings. Secrets have no flags, because other users of the machine can read a command line.
 */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const setting of SETTINGS.filter(hasFlag)) {
    if (names.includes(setting.name)) command.addOption(optionOf(setting));
  }
  return command;
}

/** Adds flags for all settings except secrets, grouped under the titles of the setting groups. */
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

function optionOf(setting: NamedSetting): Option {
  return new Option(`${flagName(setting.name)} <${setting.placeholder}>`, descriptionOf(setting));
}

/** Returns the description of a setting in the style of flags, which starts in lowercase and has no final period. */
function descriptionOf({ sentence, byDefault, ...setting }: NamedSetting): string {
  const text = sentence.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase()).replace(/\.$/, '');
  return `${text} (default: ${setting.default ?? byDefault})`;
}

/** Returns the help text for secret settings, which have no flags. */
export function secretSettingsHelp(): string {
  const lines = SETTINGS.filter((setting) => !hasFlag(setting)).map(
    (setting) => `  ${environmentName(setting.name)}\n      ${descriptionOf(setting)}`,
  );
  return [
    '',
    'Secrets have no flag. Set these variables, or append _FILE to their names and set them to the path of a file:',
    ...lines,
  ].join('\n');
}

/** Reads the settings from flags, environment and `flowhook.yaml`. @throws ConfigError */
export function configOf(options: Options): Config {
  const given = SETTINGS.filter(({ name }) => options[name] !== undefined);
  return readConfig(Object.fromEntries(given.map(({ name }) => [name, String(options[name])])));
}

/** @throws UsageError with the most similar valid value, if `value` is not one of `values` */
export function oneOf<T extends string>(flag: string, value: string, values: readonly T[]): T {
  const found = values.find((one) => one === value);
  if (found !== undefined) return found;
  const meant = nearest(value, values);
  throw new UsageError(
    `${flag} must be one of ${values.join(', ')}, found "${value}"${meant === undefined ? '' : `. Did you mean ${meant}?`}`,
  );
}

/** Parses a comma-separated list of values; undefined if the flag is missing. @throws UsageError */
export function someOf<T extends string>(flag: string, list: unknown, values: readonly T[]): T[] | undefined {
  if (list === undefined) return undefined;
  return String(list)
    .split(',')
    .map((value) => oneOf(flag, value.trim(), values));
}

/** @throws UsageError if the value is not a whole number from `least` to `most` */
export function wholeNumber(flag: string, value: unknown, least: number, most: number): number {
  const number = Number(value);
  if (/^\d{1,15}$/.test(String(value)) && number >= least && number <= most) return number;
  throw new UsageError(`${flag} must be a whole number from ${least} to ${most}, found "${value}"`);
}

/** Parses a time; undefined if the flag is missing. @throws UsageError */
export function dateFrom(flag: string, value: unknown): Date | undefined {
  if (value === undefined) return undefined;
  const ms = parseIsoTime(String(value));
  if (ms !== undefined) return new Date(ms);
  throw new UsageError(
    `${flag} must be a date or a time with a time zone, such as 2026-11-20 or 2026-11-20T10:00Z, found "${value}"`,
  );
}

/** Collects the values of a repeatable flag. Commander calls this function for each value. */
export function repeated(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/**
 * Reads a JSON file; the path `-` means standard input.
 *
 * @throws UsageError if the file cannot be read or is not JSON
 */
export async function jsonFrom(flag: string, path: string): Promise<unknown> {
  const written = await (path === '-' ? text(process.stdin) : readFile(path, 'utf8')).catch(
    (error: Error) => {
      throw new UsageError(`${flag}: the file cannot be read: ${error.message}`);
    },
  );
  return parsedJson(`${flag}: ${path}`, written);
}

/** Parses JSON. @throws UsageError that names the place */
export function parsedJson(place: string, written: string): unknown {
  try {
    return JSON.parse(written);
  } catch (error) {
    throw new UsageError(`${place} is not valid JSON: ${(error as Error).message}`);
  }
}
