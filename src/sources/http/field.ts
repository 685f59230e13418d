/** Extracts the fields of a record from one part of a response, and reports which of them were empty. */
import type { Field } from '../../model/http-source.ts';
import { readDate, readNumber } from './convert.ts';
import type { Grammar, Lookup } from './grammar.ts';

/** The result for a field. `unread` holds a text that is not the date, number or URL that it should be. */
export type Outcome = 'filled' | 'empty' | { unread: string };

export interface FieldReader {
  names: string[];
  /** Adds the fields to a record. Empty fields without a default are left out. */
  read(
    part: unknown,
    input: { base: string; record: Record<string, unknown>; tell(name: string, outcome: Outcome): void },
  ): void;
}

/**
 * The pieces of a template such as `{{first}} {{last}}`: at odd places what stands within braces, at even ones the text
 * around it. A search and no pattern, which would walk from each `{{` to the end where none is closed.
 */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (;;) {
    const open = text.indexOf('{{', from);
    // At least one character stands within.
    const close = open === -1 ? -1 : text.indexOf('}}', open + 3);
    if (close === -1) return [...pieces, text.slice(from)];
    pieces.push(text.slice(from, open), text.slice(open + 2, close));
    from = close + 2;
  }
}

/** Compiles a path, or a template of paths such as `{{first}} {{last}}`. */
export function compileText(
  text: string,
  grammar: Grammar,
  options: { trim: boolean },
): { find: Lookup; isTemplate: boolean } {
  const pieces = piecesOf(text);
  if (pieces.length === 1) return { find: grammar.compile(text, options), isTemplate: false };
  const lookups = pieces.map((piece, at) =>
    at % 2 === 1 ? grammar.compile(piece.trim(), options) : undefined,
  );
  return {
    isTemplate: true,
    find(part) {
      let found = false;
      const filled = pieces.map((piece, at) => {
        const values = lookups[at]?.(part);
        if (values === undefined) return piece;
        const value = textOfValue(values[0]);
        if (value !== '') found = true;
        return value;
      });
      // The text between the placeholders alone is not a value.
      return found ? [filled.join('').trim()] : [];
    },
  };
}

/** @param options.trim whether texts are trimmed unless the field says otherwise */
export function compileFields(
  fields: Readonly<Record<string, Field>>,
  grammar: Grammar,
  options: { trim: boolean },
): FieldReader {
  const readers = Object.entries(fields).map(([name, field]) => ({
    name,
    read: compileField(field, grammar, options),
  }));
  return {
    names: readers.map(({ name }) => name),
    read(part, { base, record, tell }) {
      for (const { name, read } of readers) {
        const { value, outcome } = read(part, base);
        tell(name, outcome);
        if (value !== undefined) setField(record, name, value);
      }
    },
  };
}

/** Assigns a field of any name: a plain assignment to `__proto__` would set the prototype and lose the field. */
export function setField(record: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
  else record[name] = value;
}

interface Read {
  value: unknown;
  outcome: Outcome;
}

function compileField(
  field: Field,
  grammar: Grammar,
  options: { trim: boolean },
): (part: unknown, base: string) => Read {
  const trim = field.trim ?? options.trim;
  const { find, isTemplate } = compileText(field.from, grammar, { trim });
  const absolute = field.absolute ?? (!isTemplate && grammar.isLink(field.from));
  const pattern = field.replace === null ? undefined : new RegExp(field.replace[0], 'gu');
  const plain =
    !field.trim && pattern === undefined && !absolute && field.number === null && field.date === null;

  function convert(raw: unknown, base: string): Read {
    if (plain) return { value: raw, outcome: isEmpty(raw) ? 'empty' : 'filled' };
    // Lists and maps are not converted, and neither are numbers, including those that a double would change.
    if (typeof raw === 'object' && raw !== null && (field.number !== null || !JSON.isRawJSON(raw)))
      return { value: raw, outcome: 'filled' };
    if (field.number !== null && typeof raw === 'number') return { value: raw, outcome: 'filled' };
    let text = textOfValue(raw);
    if (absolute && text.trim() !== '') {
      // Before `replace`, because `mailto:` is a URL too.
      const url = URL.parse(text.trim(), base);
      if (url === null) return { value: undefined, outcome: { unread: text } };
      text = url.href;
    }
    if (pattern !== undefined) text = text.replace(pattern, field.replace?.[1] ?? '');
    if (field.trim ?? (options.trim || pattern !== undefined)) text = text.trim();
    if (text === '') return { value: undefined, outcome: 'empty' };
    const converted =
      field.number !== null
        ? readNumber(text, field.number)
        : field.date !== null
          ? readDate(text, field.date)
          : text;
    return converted === undefined
      ? { value: undefined, outcome: { unread: text } }
      : { value: converted, outcome: 'filled' };
  }

  return (part, base) => {
    const found = find(part);
    const reads = (field.all ? found : found.slice(0, 1)).map((raw) => convert(raw, base));
    const filled = reads.filter(({ outcome }) => outcome === 'filled').map(({ value }) => value);
    if (filled.length > 0) return { value: field.all ? filled : filled[0], outcome: 'filled' };
    return {
      value: field.default ?? undefined,
      outcome: reads.find(({ outcome }) => typeof outcome === 'object')?.outcome ?? 'empty',
    };
  };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** A value as text: empty for null, JSON for lists and maps. */
export function textOfValue(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
