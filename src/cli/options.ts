/** Command-line flags that override settings, and validation of their values. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Option } from 'commander';
import { type Config, readConfig } from '../config/config.ts';
import { type NamedSetting, SETTINGS, type SettingName, settingsByGroup } from '../config/settings.ts';
import { environmentName, flagName } from '../config/sources.ts';
import { parseDuration } from '../std/amounts.ts';
import { missingDay, parseIsoTime } from '../std/clock.ts';
import { parseAsWritten } from '../std/exact-json.ts';
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
    `${flag} must be one of ${values.join(', ')}, found "${value}"${meant === undefined ? missingDay(String(value)) : `. Did you mean ${meant}?`}`,
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
    `${flag} must be a date or a time with a time zone, such as 2026-11-20 or 2026-11-20T10:00Z, found "${value}"${missingDay(String(value))}`,
  );
}

/** Parses the number of a version; undefined if the flag is missing. @throws UsageError */
export function versionFrom(value: unknown, flag: string): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(String(value))) return Number(value);
  throw new UsageError(`${flag} must be a version number, found "${value}"`);
}

const DAY_MS = 86_400_000;
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

/**
 * Parses a version number, or a time in one of these forms: ISO 8601, `7d` or `12h` ago, `today`, `yesterday`, `tuesday`
 * (the newest one, also today) and `last tuesday` (before today). Days begin at midnight UTC.
 *
 * @returns undefined if the flag is missing
 * @throws UsageError
 */
export function momentFrom(flag: string, value: unknown, nowMs: number): number | Date | undefined {
  if (value === undefined) return undefined;
  const text = String(value).trim().toLowerCase();
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const today = nowMs - (nowMs % DAY_MS);
  const ms = parseIsoTime(String(value)) ?? dayOf(text, today) ?? agoOf(text, nowMs);
  if (ms !== undefined) return new Date(ms);
  const meant = nearest(text.replace(/^last\s+/, ''), ['today', 'yesterday', ...WEEKDAYS]);
  throw new UsageError(
    `${flag} must be a version, a time such as 2026-11-20 or 2026-11-20T10:00Z, a period such as 7d or 12h, today, ` +
      `yesterday or a weekday, found "${value}"${meant === undefined ? missingDay(String(value)) : `. Did you mean ${meant}?`}`,
  );
}

function dayOf(text: string, today: number): number | undefined {
  if (text === 'today') return today;
  if (text === 'yesterday') return today - DAY_MS;
  const [, last, name = ''] = /^(last\s+)?([a-z]{3,})$/.exec(text) ?? [];
  const weekday = WEEKDAYS.findIndex((day) => day === name || day.slice(0, 3) === name);
  if (weekday === -1) return undefined;
  const days = (new Date(today).getUTCDay() - weekday + 7) % 7;
  return today - (last !== undefined && days === 0 ? 7 : days) * DAY_MS;
}

/** `7d` or `7d ago`. */
function agoOf(text: string, nowMs: number): number | undefined {
  const ms = parseDuration(text.replace(/\s+ago$/, ''));
  return ms === undefined || ms > nowMs ? undefined : nowMs - ms;
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

/** Parses JSON; its numbers stay as they are written. @throws UsageError that names the place */
export function parsedJson(place: string, written: string): unknown {
  try {
    return parseAsWritten(written);
  } catch (error) {
    throw new UsageError(`${place} is not valid JSON: ${(error as Error).message}`);
  }
}
