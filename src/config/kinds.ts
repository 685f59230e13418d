/** The kinds of settings: how the text of one is read, what is said of a wrong one, and which type it gives. */
import { resolve } from 'node:path';
import { parseDuration } from '../workflows/duration.ts';
import { parseSize } from '../workflows/size.ts';

/** How the text of a setting is read. */
export interface Reading<T> {
  /** What the value is called behind a flag, such as `number`. */
  value: string;
  /** The flag alone is `true`. */
  isSwitch?: true;
  /** What it must be, to stand behind "must be". */
  expected: string;
  /**
   * The value; nothing for a text that is not as expected.
   *
   * @param directory absolute: what paths are relative to
   */
  read(text: string, directory: string): T | undefined;
  /** What stands behind the name when more can be said of this text than "must be <expected>". */
  mistake?(text: string): string;
  /** What holds when nobody sets it. */
  absent?: T;
  /** What its field in `Config` has behind the name. */
  unit?: 'Ms';
}

/** One row of the table. */
export interface Setting<T> extends Reading<T> {
  sentence: string;
  /** As one would write it. Nothing where the default is none, or follows from other settings. */
  default: string | undefined;
  /** In words, where there is no such text. */
  byDefault?: string;
  /** A value that may be written into `flowhook.yaml`. */
  example: string;
  /** Never shown, without a flag, and read also from the file that `<variable>_FILE` names. */
  secret?: true;
  /** It may have a secret in it: never repeated, and read from such a file too, but it has a flag. */
  mayHoldSecret?: true;
}

/** A default that is no fixed text. */
interface Unset {
  byDefault: string;
  example: string;
}

/** What `T` becomes where there may be none. */
type Or<P, T> = P extends Unset ? T | undefined : T;

/** @param byDefault in words what holds then, such as `none` or `the address it listens on` */
export function unset(byDefault: string, example: string): Unset {
  return { byDefault, example };
}

/** A setting of its own kind; the others below are made with it. */
export function of<T, P extends string | Unset>(
  reading: Reading<T>,
  preset: P,
  sentence: string,
  more: { secret?: true; mayHoldSecret?: true } = {},
): Setting<Or<P, T>> {
  const initial =
    typeof preset === 'string'
      ? { default: preset, example: preset }
      : { default: undefined, byDefault: preset.byDefault, example: preset.example };
  return { ...reading, ...initial, ...more, sentence } as Setting<Or<P, T>>;
}

/** A text, of a certain form where there is a pattern. */
export function text<P extends string | Unset>(
  form: { value: string; expected: string; pattern?: RegExp },
  preset: P,
  sentence: string,
) {
  const { value, expected, pattern = /^/ } = form;
  const read = (text: string) => (pattern.test(text) ? text : undefined);
  return of<string, P>({ value, expected, read }, preset, sentence);
}

/** A whole number within bounds, both included. */
export function whole<P extends number | Unset>(least: number, most: number, preset: P, sentence: string) {
  const reading: Reading<number> = {
    value: 'number',
    expected: `a whole number from ${least} to ${most}`,
    read: (text) => {
      const number = Number(text);
      return /^\d+$/.test(text) && number >= least && number <= most ? number : undefined;
    },
  };
  return of(reading, asText(preset), sentence) as Setting<Or<P, number>>;
}

/**
 * One of some words.
 *
 * @param value what they are called behind the flag, where they are too many to stand there; the sentence names them then
 */
export function oneOf<T extends string>(
  words: readonly T[],
  preset: NoInfer<T>,
  sentence: string,
  value = words.join('|'),
) {
  const read = (text: string) => words.find((word) => word === text);
  const reading = { value, expected: `one of ${words.join(', ')}`, read };
  return of<T, string>(reading, preset, sentence);
}

/** `on` or `off`. */
export function onOff(preset: 'on' | 'off', sentence: string) {
  const read = (text: string) => (text === 'on' ? true : text === 'off' ? false : undefined);
  return of<boolean, string>({ value: 'on|off', expected: 'one of on, off', read }, preset, sentence);
}

/** A number of bytes such as `10GB`, within bounds that are written in the same way. */
export function size<P extends string | Unset>(least: string, most: string, preset: P, sentence: string) {
  const [leastBytes, mostBytes] = [parseSize(least) ?? 0, parseSize(most) ?? 0];
  const reading: Reading<number> = {
    value: 'size',
    expected: `a size from ${least} to ${most} such as 500MB or 10GB`,
    read: (text) => {
      const bytes = parseSize(text);
      return bytes !== undefined && bytes >= leastBytes && bytes <= mostBytes ? bytes : undefined;
    },
  };
  return of<number, P>(reading, preset, sentence);
}

/** A length of time such as `30s`, in milliseconds; its field ends in `Ms`. Bounds are written in the same way. */
export function duration<P extends string | Unset>(least: string, most: string, preset: P, sentence: string) {
  return of<number, P>(timeReading(least, most), preset, sentence) as Setting<Or<P, number>> & { unit: 'Ms' };
}

/** A length of time, or `off`, which gives null. */
export function durationOrOff(least: string, most: string, preset: string, sentence: string) {
  const time = timeReading(least, most);
  const reading: Reading<number | null> = {
    ...time,
    value: 'time|off',
    expected: `off, or ${time.expected}`,
    read: (text, directory) => (text === 'off' ? null : time.read(text, directory)),
  };
  return of(reading, preset, sentence) as Setting<number | null> & { unit: 'Ms' };
}

function timeReading(least: string, most: string): Reading<number> {
  const [leastMs, mostMs] = [parseDuration(least) ?? 0, parseDuration(most) ?? 0];
  return {
    value: 'time',
    expected: `a time from ${least} to ${most} such as 30s, 15m or 24h`,
    read: (text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms >= leastMs && ms <= mostMs ? ms : undefined;
    },
    unit: 'Ms',
  };
}

/** A path, which becomes absolute. */
export function path<P extends string | Unset>(value: 'directory' | 'file', preset: P, sentence: string) {
  const read = (text: string, directory: string) => resolve(directory, text);
  return of<string, P>({ value, expected: `the path of a ${value}`, read }, preset, sentence);
}

/**
 * Words with commas between, as texts; none when nobody sets it.
 *
 * @param entry whether one of them is as expected, and what all of them must be
 */
export function list(
  entry: { is(one: string): boolean; expected: string },
  preset: string | Unset,
  sentence: string,
) {
  const read = (text: string) => {
    const entries = text
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '');
    return entries.every(entry.is) ? entries : undefined;
  };
  const reading = { value: 'list', expected: entry.expected, read, absent: [] };
  return of(reading, preset, sentence) as Setting<string[]>;
}

/** A secret: from the environment or a file only. */
export function secret<T>(reading: Reading<T>, byDefault: string, sentence: string) {
  return of(reading, unset(byDefault, ''), sentence, { secret: true });
}

function asText(preset: number | Unset): string | Unset {
  return typeof preset === 'number' ? String(preset) : preset;
}
