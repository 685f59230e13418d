/** Checks settings that people write, and collects all mistakes with their lines. */
import { nearest } from '../std/nearest.ts';

/** A mistake in a file, for its author. Lines count from 1; null where no line applies. */
export interface Mistake {
  file: string;
  line: number | null;
  message: string;
}

/** The path of a setting: `['limits', 'timeout']`, with list positions as numbers. */
export type Path = readonly (string | number)[];

/** Finds the line of a setting. */
export type LineOf = (path: Path) => number | null;

/** Further mistakes are only counted: each costs the look-up of its line, and the nearest name of what was meant. */
const MAX_MISTAKES = 100;
/** Names longer than this are shortened in messages. */
const MAX_NAME = 200;

/** The checks return the value, or undefined after recording a mistake. */
export interface Checker {
  readonly mistakes: Mistake[];
  /** How many more there are. */
  untold(): number;
  /** Records a mistake. The sentence continues after the setting's name. */
  wrong(path: Path, sentence: string): void;
  /**
   * A map of settings. Unknown keys are mistakes, with the sentence of `misplaced` where that has one. Returns an empty
   * map if the value is missing or not a map.
   */
  map(
    value: unknown,
    path: Path,
    keys: { known: readonly string[]; misplaced?: Readonly<Record<string, string>> },
  ): Record<string, unknown>;
  text(value: unknown, path: Path, longest: number): string | undefined;
  oneOf<T extends string>(value: unknown, path: Path, choices: readonly T[]): T | undefined;
  number(
    value: unknown,
    path: Path,
    bounds: { min: number; max: number; whole: boolean },
  ): number | undefined;
  /** A list of non-empty strings. */
  texts(
    value: unknown,
    path: Path,
    bounds: { min: number; max: number; example: string },
  ): string[] | undefined;
}

/** Undefined and null both mean "not written": YAML reads `key:` as null. */
export function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** The checked value of a setting, or its default if it is missing or wrong. */
export function orDefault<T>(value: unknown, fallback: T, check: () => T | undefined): T {
  return isMissing(value) ? fallback : (check() ?? fallback);
}

export function createChecker(file: string, lineOf: LineOf): Checker {
  const mistakes: Mistake[] = [];
  let untold = 0;

  function isFull(): boolean {
    return mistakes.length >= MAX_MISTAKES;
  }

  function wrong(path: Path, sentence: string): void {
    if (isFull()) {
      untold += 1;
      return;
    }
    mistakes.push({
      file,
      line: lineOf(path),
      message: path.length === 0 ? sentence : `\`${nameOf(path)}\` ${sentence}`,
    });
  }

  return {
    mistakes,
    untold: () => untold,
    wrong,
    map(value, path, { known, misplaced = {} }) {
      if (isMissing(value)) return {};
      if (typeof value !== 'object' || Array.isArray(value)) {
        const found = `found ${describe(value)}`;
        wrong(
          path,
          path.length === 0
            ? `A definition must be a map of settings, ${found}`
            : `must be a map of settings, ${found}`,
        );
        return {};
      }
      for (const key of Object.keys(value)) {
        if (known.includes(key)) continue;
        const reason = Object.hasOwn(misplaced, key) ? misplaced[key] : undefined;
        if (isFull()) wrong(path, '');
        else wrong([...path, key], reason ?? `is not a setting that exists${suggestion(key, known)}`);
      }
      return value as Record<string, unknown>;
    },
    text(value, path, longest) {
      if (typeof value === 'string' && value.trim() !== '' && value.length <= longest) return value;
      wrong(path, `must be a text of 1 to ${longest} characters, found ${describe(value)}`);
      return undefined;
    },
    oneOf(value, path, choices) {
      const choice = choices.find((known) => known === value);
      if (choice !== undefined) return choice;
      const hint = typeof value === 'string' ? suggestion(value, choices, '') : '';
      wrong(path, `must be ${choices.join(' or ')}, found ${describe(value)}${hint}`);
      return undefined;
    },
    number(value, path, { min, max, whole }) {
      const fits =
        typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value));
      if (fits) return value;
      wrong(path, `must be a ${whole ? 'whole ' : ''}number from ${min} to ${max}, found ${describe(value)}`);
      return undefined;
    },
    texts(value, path, { min, max, example }) {
      if (!Array.isArray(value) || value.length < min || value.length > max) {
        wrong(path, `must be a list of ${min} to ${max} texts such as ${example}, found ${describe(value)}`);
        return undefined;
      }
      let good = true;
      for (const [position, item] of value.entries()) {
        if (typeof item === 'string' && item !== '') continue;
        const quotes = typeof item === 'number' || typeof item === 'boolean' ? ': put it into quotes' : '';
        wrong([...path, position], `must be a text that is not empty, found ${describe(item)}${quotes}`);
        good = false;
      }
      return good ? (value as string[]) : undefined;
    },
  };
}

/** A value as mistakes name it, shortened. */
export function describe(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object') return 'a map';
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  return `the ${typeof value} ${String(value)}`;
}

function suggestion(written: string, names: readonly string[], otherwise = known(names)): string {
  const meant = nearest(written, names);
  return meant === undefined ? otherwise : `. Did you mean \`${meant}\`?`;
}

function known(names: readonly string[]): string {
  return `. Those that exist here: ${names.join(', ')}`;
}

function nameOf(path: Path): string {
  const whole = path.reduce<string>((name, part) => {
    if (typeof part === 'number') return `${name}[${part}]`;
    return name === '' ? part : `${name}.${part}`;
  }, '');
  return whole.length > MAX_NAME ? `${whole.slice(0, MAX_NAME)}…` : whole;
}
