/** Checks `fields`: the path of each field of a record, and the conversions of its value. */
import type { Field, Parse } from '../model/http-source.ts';
import { compileText, isDatePattern, piecesOf } from '../sources/http/fields.ts';
import { grammarOf } from '../sources/http/paths.ts';
import { describe, Section } from './section.ts';

const SETTINGS = ['from', 'replace', 'default', 'trim', 'date', 'number', 'absolute', 'all'];
const MAX_FIELDS = 1_000;
/**
 * Maximum lengths in characters. Real paths and patterns have a few hundred characters, and compiling long ones is
 * slow.
 */
const MAX_PATH = 2_000;
const MAX_PATTERN = 1_000;

/** @param parse the format of the response; null if the format is known only once a response arrives */
export function checkFields(section: Section, parse: Parse | null): Record<string, Field> {
  const map = section.free('fields', 'must be a map of names to paths, such as { id: $.id }');
  const names = Object.keys(map.values);
  if (names.length > MAX_FIELDS) section.wrong('fields', `has more than ${MAX_FIELDS} fields`);
  const fields: Record<string, Field> = {};
  for (const name of names.slice(0, MAX_FIELDS)) {
    const value = checkField(map, name, parse);
    if (value !== undefined) Object.defineProperty(fields, name, { value, enumerable: true, writable: true });
  }
  return fields;
}

function checkField(map: Section, name: string, parse: Parse | null): Field | undefined {
  const written = map.values[name];
  const isPath = typeof written === 'string';
  const settings = new Section(map.checker, isPath ? {} : written, [...map.path, name], SETTINGS);
  if (!isPath && !settings.has('from')) {
    map.wrong(name, 'must be a path, or a map with the path in `from`');
    return undefined;
  }
  const from = isPath ? checkPath(map, name, parse) : checkPath(settings, 'from', parse);
  if (from === undefined) return undefined;
  const field: Field = {
    from,
    replace: checkReplace(settings),
    default: settings.read('default', 'must be a string, a number, true or false', asScalar, null),
    trim: settings.flag('trim', null),
    date: settings.read('date', 'must be true, or a pattern such as DD.MM.YYYY', asDate, null) || null,
    number:
      settings.read('number', 'must be true, or "," if the decimal mark is a comma', asMark, null) || null,
    absolute: settings.flag('absolute', null),
    all: settings.flag('all', false),
  };
  const kinds = [field.date !== null, field.number !== null, field.absolute === true];
  if (kinds.filter(Boolean).length > 1)
    map.wrong(name, 'must have only one of `date`, `number` and `absolute`');
  return field;
}

/**
 * Reads a path, or a template that contains paths. The path is compiled, as a check, if the format of the response is
 * known.
 */
export function checkPath(section: Section, name: string, parse: Parse | null): string | undefined {
  const text = section.text(name, MAX_PATH);
  if (text === undefined) return undefined;
  if (piecesOf(text).some((piece, at) => at % 2 === 0 && piece.includes('{{'))) {
    section.wrong(
      name,
      `has \`{{\` without a matching \`}}\`, found ${describe(text)}. Write, for example, "{{ name }}"`,
    );
    return undefined;
  }
  const assumed = parse ?? (text.startsWith('$') || text.includes('{{$') ? 'json' : null);
  if (assumed === null) return text;
  try {
    compileText(text, grammarOf(assumed), { trim: true });
    return text;
  } catch (error) {
    section.wrong(name, `is not a valid path: ${(error as Error).message}`);
    return undefined;
  }
}

function checkReplace(settings: Section): Field['replace'] {
  const replace = settings.read(
    'replace',
    'must be [pattern, replacement], such as ["^mailto:", ""]',
    (value) =>
      Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string')
        ? (value as [string, string])
        : undefined,
    null,
  );
  if (replace === null) return null;
  const wrong = (sentence: string) => {
    settings.checker.wrong([...settings.path, 'replace', 0], sentence);
    return null;
  };
  const [pattern] = replace;
  if (pattern.length > MAX_PATTERN)
    return wrong(`must be at most ${MAX_PATTERN} characters long, found ${pattern.length}`);
  try {
    new RegExp(pattern, 'gu');
    return replace;
  } catch (error) {
    return wrong(`is not a valid regular expression: ${(error as Error).message}`);
  }
}

function asScalar(value: unknown): string | number | boolean | undefined {
  const isScalar = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isScalar ? value : undefined;
}

/** Reads a date conversion. The value `false` is returned unchanged, because it turns the conversion off. */
function asDate(value: unknown): string | false | undefined {
  if (value === false) return false;
  if (value === true) return 'auto';
  return typeof value === 'string' && isDatePattern(value) ? value : undefined;
}

function asMark(value: unknown): '.' | ',' | false | undefined {
  if (value === true) return '.';
  return value === false || value === '.' || value === ',' ? value : undefined;
}
