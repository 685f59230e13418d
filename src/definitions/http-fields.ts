/** Checks `fields`: the path of each field of a record, and the conversions of its value. */
import type { Field, Parse } from '../model/http-source.ts';
import { compileText, isDatePattern, piecesOf } from '../sources/http/fields.ts';
import { grammarOf } from '../sources/http/paths.ts';
import { type Checker, describe, isMissing, type Path } from './checker.ts';

const SETTINGS = ['from', 'replace', 'default', 'trim', 'date', 'number', 'absolute', 'all'];
const MAX_FIELDS = 1_000;
/** Of a path or a pattern: what people write has some hundred characters, and compiling takes longer than reading. */
const MAX_PATH = 2_000;
const MAX_PATTERN = 1_000;

/** @param parse the format of the response; null: only known once it arrives */
export function checkFields(
  checker: Checker,
  value: unknown,
  path: Path,
  parse: Parse | null,
): Record<string, Field> {
  const fields: Record<string, Field> = {};
  if (isMissing(value)) return fields;
  if (typeof value !== 'object' || Array.isArray(value)) {
    checker.wrong(path, `must be a map of names to paths, such as { id: $.id }, found ${describe(value)}`);
    return fields;
  }
  const entries = Object.entries(value);
  if (entries.length > MAX_FIELDS) checker.wrong(path, `has more than ${MAX_FIELDS} fields`);
  for (const [name, one] of entries.slice(0, MAX_FIELDS)) {
    const field = checkField(checker, one, [...path, name], parse);
    if (field !== undefined)
      Object.defineProperty(fields, name, { value: field, enumerable: true, writable: true });
  }
  return fields;
}

function checkField(checker: Checker, value: unknown, path: Path, parse: Parse | null): Field | undefined {
  if (typeof value === 'string') {
    const from = checkPath(checker, value, path, parse);
    return from === undefined ? undefined : { ...PLAIN, from };
  }
  const settings = checker.map(value, path, { known: SETTINGS });
  if (isMissing(settings.from)) {
    checker.wrong(path, 'must be a path, or a map that has one in `from`');
    return undefined;
  }
  const from = checkPath(checker, settings.from, [...path, 'from'], parse);
  if (from === undefined) return undefined;
  const field: Field = {
    from,
    replace: checkReplace(checker, settings.replace, [...path, 'replace']),
    default: checkDefault(checker, settings.default, [...path, 'default']),
    trim: checkFlag(checker, settings.trim, [...path, 'trim']),
    date: checkDate(checker, settings.date, [...path, 'date']),
    number: checkNumber(checker, settings.number, [...path, 'number']),
    absolute: checkFlag(checker, settings.absolute, [...path, 'absolute']),
    all: checkFlag(checker, settings.all, [...path, 'all']) ?? false,
  };
  const kinds = [field.date !== null, field.number !== null, field.absolute === true];
  if (kinds.filter(Boolean).length > 1)
    checker.wrong(path, 'can be only one of `date`, `number` and `absolute`');
  return field;
}

const PLAIN: Omit<Field, 'from'> = {
  replace: null,
  default: null,
  trim: null,
  date: null,
  number: null,
  absolute: null,
  all: false,
};

/** A path or a template of paths. Compiled to check it where the format of the response is known. */
export function checkPath(
  checker: Checker,
  value: unknown,
  path: Path,
  parse: Parse | null,
): string | undefined {
  const text = checker.text(value, path, MAX_PATH);
  if (text === undefined) return undefined;
  if (piecesOf(text).some((piece, at) => at % 2 === 0 && piece.includes('{{'))) {
    checker.wrong(path, `opens {{ and does not close it, such as "{{ name }}", found ${describe(value)}`);
    return undefined;
  }
  const assumed = parse ?? (text.startsWith('$') || text.includes('{{$') ? 'json' : null);
  if (assumed === null) return text;
  try {
    compileText(text, grammarOf(assumed), { trim: true });
    return text;
  } catch (error) {
    checker.wrong(path, `cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

function checkReplace(checker: Checker, value: unknown, path: Path): Field['replace'] {
  if (isMissing(value)) return null;
  const texts = Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string');
  if (!texts) {
    checker.wrong(path, `must be [pattern, replacement], such as ["^mailto:", ""], found ${describe(value)}`);
    return null;
  }
  const [pattern, replacement] = value as [string, string];
  if (pattern.length > MAX_PATTERN) {
    checker.wrong([...path, 0], `must be at most ${MAX_PATTERN} characters long, found ${pattern.length}`);
    return null;
  }
  try {
    new RegExp(pattern, 'gu');
  } catch (error) {
    checker.wrong([...path, 0], `is not a regular expression: ${(error as Error).message}`);
    return null;
  }
  return [pattern, replacement];
}

function checkDefault(checker: Checker, value: unknown, path: Path): Field['default'] {
  if (isMissing(value)) return null;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  checker.wrong(path, `must be a text, a number, true or false, found ${describe(value)}`);
  return null;
}

function checkDate(checker: Checker, value: unknown, path: Path): string | null {
  if (isMissing(value) || value === false) return null;
  if (value === true) return 'auto';
  if (typeof value === 'string' && isDatePattern(value)) return value;
  checker.wrong(path, `must be true, or a pattern such as DD.MM.YYYY, found ${describe(value)}`);
  return null;
}

function checkNumber(checker: Checker, value: unknown, path: Path): Field['number'] {
  if (isMissing(value) || value === false) return null;
  if (value === true) return '.';
  if (value === '.' || value === ',') return value;
  checker.wrong(path, `must be true, or "," where that is the decimal mark, found ${describe(value)}`);
  return null;
}

/** True, false, or null if missing. */
export function checkFlag(checker: Checker, value: unknown, path: Path): boolean | null {
  if (isMissing(value)) return null;
  if (typeof value === 'boolean') return value;
  checker.wrong(path, `must be true or false, found ${describe(value)}`);
  return null;
}
