/** The values of flags, read and checked; a wrong one is a UsageError that names the flag. */
import { parseIsoTime } from '../std/clock.ts';
import { nearest } from '../std/nearest.ts';
import { UsageError } from './exit.ts';

/** @throws UsageError that also names the value that was probably meant */
export function oneOf<T extends string>(flag: string, value: string, values: readonly T[]): T {
  const found = values.find((one) => one === value);
  if (found !== undefined) return found;
  const meant = nearest(value, values);
  throw new UsageError(
    `${flag} must be ${values.join(', ')}, found "${value}"${meant === undefined ? '' : `. Did you mean ${meant}?`}`,
  );
}

/** A comma-separated list of such values; undefined when the flag is missing. */
export function someOf<T extends string>(flag: string, list: unknown, values: readonly T[]): T[] | undefined {
  if (list === undefined) return undefined;
  return String(list)
    .split(',')
    .map((value) => oneOf(flag, value.trim(), values));
}

/** @throws UsageError unless it is a whole number from `least` to `most` */
export function wholeNumber(flag: string, value: unknown, least: number, most: number): number {
  const number = Number(value);
  if (/^\d{1,15}$/.test(String(value)) && number >= least && number <= most) return number;
  throw new UsageError(`${flag} must be a whole number from ${least} to ${most}, found "${value}"`);
}

/** A time with its zone, in epoch milliseconds; undefined when the flag is missing. */
export function timeFrom(flag: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseIsoTime(String(value));
  if (ms !== undefined) return ms;
  throw new UsageError(`${flag} must be a time with its zone, such as 2026-11-20T10:00Z, found "${value}"`);
}

/** For commander: collects the values of a flag that may be given several times. */
export function repeated(value: string, before: string[] = []): string[] {
  return [...before, value];
}
