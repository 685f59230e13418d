/** Reads settings, fills in defaults, and collects all mistakes with their lines. */
import { formatSize, parseDuration, parseSize } from '../std/amounts.ts';
import { nearest } from '../std/nearest.ts';

/**
 * A mistake in a definition file, described for the author of the file. Lines count from 1; `line` is null if no line
 * applies.
 */
export interface Mistake {
  file: string;
  line: number | null;
  message: string;
}

/** A mistake as printed: `acme/people.yaml:3: …`. */
export function mistakeLine({ file, line, message }: Mistake): string {
  return `${file}${line === null ? '' : `:${line}`}: ${message}`;
}

/** The path of a setting: `['limits', 'timeout']`. Positions in lists are numbers. */
export type Path = readonly (string | number)[];

/** Finds the line of a setting. */
export type LineOf = (path: Path) => number | null;

/**
 * Maximum number of mistakes reported in full. It is limited because for each mistake, the line and the most similar
 * setting must be found. Further mistakes are only counted.
 */
const MAX_MISTAKES = 100;
/** Messages shorten names that are longer than this many characters. */
const MAX_NAME = 200;

export class Checker {
  readonly mistakes: Mistake[] = [];
  /** The number of further mistakes that are not in `mistakes`. */
  omitted = 0;
  readonly #file: string;
  readonly #lineOf: LineOf;

  constructor(file: string, lineOf: LineOf) {
    this.#file = file;
    this.#lineOf = lineOf;
  }

  get isFull(): boolean {
    return this.mistakes.length >= MAX_MISTAKES;
  }

  /** Records a mistake. In the message, the sentence follows the name of the setting. */
  wrong(path: Path, sentence: string): void {
    if (this.isFull) {
      this.omitted += 1;
      return;
    }
    const message = path.length === 0 ? sentence : `\`${nameOf(path)}\` ${sentence}`;
    this.mistakes.push({ file: this.#file, line: this.#lineOf(path), message });
  }
}

/**
 * The settings of one map. Each method reads one setting. If the setting is missing, the method returns `otherwise`;
 * without an `otherwise`, the setting is required. If the value is wrong, the method records a mistake and returns
 * `otherwise`.
 */
export class Section {
  readonly checker: Checker;
  readonly path: Path;
  readonly values: Readonly<Record<string, unknown>>;

  /**
   * @param value a map, or a missing value; any other value is a mistake
   * @param known the names of the allowed settings; null allows all names
   * @param misplaced sentences about settings that belong elsewhere, by the name of the setting
   * @param example such a map, for the mistake
   */
  constructor(
    checker: Checker,
    value: unknown,
    path: Path,
    known: readonly string[] | null,
    misplaced: Readonly<Record<string, string>> = {},
    example?: string,
  ) {
    this.checker = checker;
    this.path = path;
    this.values = asMap(value) ?? {};
    if (!isMissing(value) && asMap(value) === undefined) {
      const must = path.length === 0 ? 'A definition must be' : 'must be';
      const such = example === undefined ? '' : ` such as ${example}`;
      checker.wrong(path, `${must} a map of settings${such}, found ${describe(value)}`);
    }
    for (const key of known === null ? [] : Object.keys(this.values)) {
      if (known?.includes(key)) continue;
      const reason = Object.hasOwn(misplaced, key) ? misplaced[key] : undefined;
      if (checker.isFull) checker.wrong(path, '');
      else this.wrong(key, reason ?? `is not a known setting${suggestion(key, known ?? [])}`);
    }
  }

  has(name: string): boolean {
    return !isMissing(this.values[name]);
  }

  wrong(name: string, sentence: string): void {
    this.checker.wrong([...this.path, name], sentence);
  }

  section(name: string, known: readonly string[] | null, example?: string): Section {
    return new Section(this.checker, this.values[name], [...this.path, name], known, {}, example);
  }

  /** Reads a map whose keys the author chooses. @param sentence says what the map must be */
  free(name: string, sentence: string): Section {
    return new Section(this.checker, this.read(name, sentence, asMap, {}), [...this.path, name], null);
  }

  /**
   * @param sentence says what the value must be
   * @param parse returns undefined for a wrong value
   * @param hint returns text to append to the mistake
   */
  read<T, D = undefined>(
    name: string,
    sentence: string,
    parse: (value: unknown) => T | undefined,
    otherwise?: D,
    hint: (value: unknown) => string = () => '',
  ): T | D {
    const value = this.values[name];
    if (isMissing(value) && otherwise !== undefined) return otherwise;
    const found = isMissing(value) ? undefined : parse(value);
    if (found !== undefined) return found;
    this.wrong(name, `${sentence}, found ${describe(value)}${hint(value)}`);
    return otherwise as D;
  }

  text<D = undefined>(name: string, longest: number, otherwise?: D): string | D {
    const isText = (value: unknown) =>
      typeof value === 'string' && value.trim() !== '' && value.length <= longest ? value : undefined;
    return this.read(name, `must be a string of 1 to ${longest} characters`, isText, otherwise);
  }

  /** @param synonyms other names of choices, which a mistake suggests to replace */
  oneOf<T extends string, D = undefined>(
    name: string,
    choices: readonly T[],
    otherwise?: D,
    synonyms: ReadonlyMap<string, T> = new Map(),
  ): T | D {
    return this.read(
      name,
      `must be ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`,
      (value) => choices.find((choice) => choice === value),
      otherwise,
      (value) => (typeof value === 'string' ? suggestion(synonyms.get(value) ?? value, choices, '') : ''),
    );
  }

  /** @param bounds the inclusive bounds; by default, only whole numbers are allowed */
  number<D = undefined>(
    name: string,
    { min, max, whole = true }: { min: number; max: number; whole?: boolean },
    otherwise?: D,
  ): number | D {
    return this.read(
      name,
      `must be a ${whole ? 'whole ' : ''}number from ${min} to ${max}`,
      (value) =>
        typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value))
          ? value
          : undefined,
      otherwise,
      asNumber,
    );
  }

  /** @returns a percentage: 20 for `20%`. A plain number is a mistake, because 0.2 could mean 20 % or 0.2 %. */
  percent<D = undefined>(name: string, max: number, otherwise?: D): number | D {
    return this.read(
      name,
      `must be a percentage such as 20%, from 0% to ${max}%`,
      (value) => {
        const [, digits] = (typeof value === 'string' && /^(\d{1,7}(?:\.\d{1,6})?) ?%$/.exec(value)) || [];
        return digits === undefined || Number(digits) > max ? undefined : Number(digits);
      },
      otherwise,
      asPercentage,
    );
  }

  flag<D = undefined>(name: string, otherwise?: D): boolean | D {
    return this.read(
      name,
      'must be true or false',
      (value) => (typeof value === 'boolean' ? value : undefined),
      otherwise,
    );
  }

  /** @returns the duration in milliseconds, at least 1. @param most the maximum duration, such as `10m` */
  duration<D = undefined>(name: string, most: string, otherwise?: D): number | D {
    const sentence = `must be a duration such as 500ms, 30s, 15m or 2h, at most ${most}`;
    return this.read(name, sentence, (value) => durationWithin(value, '1ms', most), otherwise, addUnit);
  }

  /** @returns bytes */
  size<D = undefined>(
    name: string,
    { min, max, example }: { min: number; max: number; example: string },
    otherwise?: D,
  ): number | D {
    const read = (value: unknown) => {
      const bytes = parseSize(value);
      return bytes !== undefined && bytes >= min && bytes <= max ? bytes : undefined;
    };
    const sentence = `must be a size such as ${example}, from ${formatSize(min)} to ${formatSize(max)}`;
    return this.read(name, sentence, read, otherwise, addUnit);
  }

  /** A list of non-empty strings. */
  texts<D = undefined>(
    name: string,
    { max, example }: { max: number; example: string },
    otherwise?: D,
  ): string[] | D {
    const list = this.read(
      name,
      `must be a list of 1 to ${max} strings such as ${example}`,
      (value) => (Array.isArray(value) && value.length >= 1 && value.length <= max ? value : undefined),
      otherwise,
    );
    if (!Array.isArray(list)) return list;
    let isGood = true;
    for (const [position, item] of list.entries()) {
      if (typeof item === 'string' && item !== '') continue;
      const quotes = typeof item === 'number' || typeof item === 'boolean' ? '. Put it in quotes' : '';
      this.checker.wrong(
        [...this.path, name, position],
        `must be a non-empty string, found ${describe(item)}${quotes}`,
      );
      isGood = false;
    }
    return isGood ? (list as string[]) : (otherwise as D);
  }
}

/** Both undefined and null mean that a setting is missing, because YAML reads `key:` as null. */
export function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

export function asMap(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

/**
 * Parses a duration such as `15m` into milliseconds; undefined if the value is not a duration from `least` to `most`.
 */
export function durationWithin(value: unknown, least: string, most: string): number | undefined {
  const ms = parseDuration(value);
  const [min = 0, max = 0] = [parseDuration(least), parseDuration(most)];
  return ms !== undefined && ms >= min && ms <= max ? ms : undefined;
}

/** Returns a hint if the value is a number without a unit, or a duration in words: `26 hours`. */
export function addUnit(value: unknown): string {
  if (typeof value === 'number') return '. Add a unit';
  const [, count, unit] =
    (typeof value === 'string' && /^(\d+) ?(s|m|h|d)(?:ec|in|our|r|ay)[a-z]*$/i.exec(value)) || [];
  return unit === undefined ? '' : `. Write ${count}${unit.toLowerCase()}`;
}

/** Returns a hint if the value is a number in quotes, or a count with its noun: `90d`, `500 versions`. */
export function asNumber(value: unknown): string {
  const [, digits, noun] =
    (typeof value === 'string' && /^(-?\d+(?:\.\d+)?) ?(d|days?|versions?|records?)?$/i.exec(value)) || [];
  if (digits === undefined) return '';
  return noun === undefined ? '. Remove the quotes' : `. Write ${digits}`;
}

function asPercentage(value: unknown): string {
  if (typeof value !== 'number') return '';
  // A share: 0.98 probably means 98 %.
  return value > 0 && value < 1
    ? `. Write ${Number((value * 100).toPrecision(12))}% or ${value}%`
    : '. Add `%`';
}

/** Yields all nested values that are neither a map nor a list. */
export function* leavesOf(value: unknown, path: Path): Generator<{ path: Path; leaf: unknown }> {
  if (typeof value !== 'object' || value === null) yield { path, leaf: value };
  else
    for (const [name, inner] of Object.entries(value)) {
      yield* leavesOf(inner, [...path, Array.isArray(value) ? Number(name) : name]);
    }
}

/** Describes a value for the message of a mistake. Long strings are cut. */
export function describe(value: unknown): string {
  if (isMissing(value)) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object') return 'a map';
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  return `the ${typeof value} ${String(value)}`;
}

function suggestion(
  written: string,
  names: readonly string[],
  otherwise = `. Known settings: ${names.join(', ')}`,
): string {
  const meant = nearest(written, names);
  return meant === undefined ? otherwise : `. Did you mean \`${meant}\`?`;
}

function nameOf(path: Path): string {
  const whole = path.reduce<string>((name, part) => {
    if (typeof part === 'number') return `${name}[${part}]`;
    return name === '' ? part : `${name}.${part}`;
  }, '');
  return whole.length > MAX_NAME ? `${whole.slice(0, MAX_NAME)}…` : whole;
}
