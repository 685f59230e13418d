/** Sentences about the mistakes that the library finds. */
import { nearest } from '../../std/nearest.ts';
import { formOf } from './code.ts';
import { mistakeAt } from './mistakes.ts';

/** An error of the library. */
interface LibraryError extends Error {
  code?: string;
  /** The message without the excerpt of the expression. */
  summary?: string;
  range?: { start: number; end: number };
}

/**
 * Whether the library only lacks a type: `condition ? a : b` has results of different types, or several operators fit,
 * as for elements of `[]`. That second error has no code.
 */
export function isOfTypesOnly(error: unknown): boolean {
  const { code, message } = error as LibraryError;
  return code === 'incompatible_ternary_branches' || /^Operator overload .* overlaps with /.test(message);
}

/**
 * The mistake for an error of the library.
 *
 * @returns the error itself if the library did not throw it
 */
export function mistakeOf(source: string, error: unknown, eventFields: readonly string[]): unknown {
  const { name, code, summary = '', range } = error as LibraryError;
  if (error instanceof RangeError) {
    return mistakeAt(source, 'The expression is nested too deeply', { start: 0, end: 0 });
  }
  if (code === undefined) return error;
  const place = range ?? { start: 0, end: source.length };
  if (name === 'ParseError') return syntaxMistake(source, summary, place);
  return mistakeAt(source, typeSentence(summary, eventFields), place);
}

const OPERATORS: Readonly<Record<string, string>> = {
  and: '&&',
  or: '||',

  '===': '==',
  '<>': '!=',
};
const RESERVED = /^(?:in|null|true|false)$/;

function syntaxMistake(source: string, summary: string, place: { start: number; end: number }): unknown {
  const limit = /^Exceeded max(\w+) \((\d+)\)/.exec(summary);
  if (limit !== null) {
    const [, kind = '', count] = limit;
    return mistakeAt(source, `An expression has at most ${count} ${LIMITS[kind] ?? 'parts'}`, place);
  }
  if (/\bEOF\b/.test(summary)) return mistakeAt(source, 'The expression is incomplete', place);
  const macro = /^(\w+)\(.*invalid predicate iteration variable/.exec(summary)?.[1];
  if (macro !== undefined) return mistakeAt(source, `${macro} is written ${formOf(macro)}`, place);
  if (/^Invalid escape sequence: \\\s/.test(summary))
    return mistakeAt(source, 'A text cannot continue on the next line', place);
  if (!/^(?:Unexpected|Expected|Reserved)/.test(summary)) return mistakeAt(source, summary, place);
  const found = wordAt(source, place.start);
  const word = source.slice(found.start, found.end);
  if (word === '=') return mistakeAt(source, 'A single = has no meaning; compare with ==', found);
  const operator = Object.hasOwn(OPERATORS, word) ? OPERATORS[word] : undefined;
  if (operator !== undefined) return mistakeAt(source, `"${word}" has no meaning; write ${operator}`, found);
  const not = /\bnot\s+$/.exec(source.slice(0, found.start));
  if (not !== null) {
    return mistakeAt(source, '"not" has no meaning; write !', { start: not.index, end: not.index + 3 });
  }
  const isField = source[found.start - 1] === '.' && RESERVED.test(word);
  if (isField)
    return mistakeAt(source, `"${word}" is a reserved word; write ["${word}"] instead of .${word}`, found);
  const isReserved = summary.startsWith('Reserved');
  return mistakeAt(source, isReserved ? `"${word}" is a reserved word` : `"${word}" was not expected`, found);
}

const LIMITS: Readonly<Record<string, string>> = {
  Depth: 'levels of parentheses and parts',
  ListElements: 'items in a list',
  MapEntries: 'fields in an object',
  CallArguments: 'arguments of a function',
};

/** The word or the operator at a position, or the single character. */
function wordAt(source: string, at: number): { start: number; end: number } {
  const kind = [/[A-Za-z0-9_]/, /[=<>!]/].find((one) => one.test(source[at] ?? ''));
  let start = at;
  let end = at + (String.fromCodePoint(source.codePointAt(at) ?? 32).length || 1);
  if (kind === undefined) return { start, end: Math.min(end, source.length) };
  while (start > 0 && kind.test(source[start - 1] as string)) start -= 1;
  while (end < source.length && kind.test(source[end] as string)) end += 1;
  return { start, end };
}

function typeSentence(summary: string, eventFields: readonly string[]): string {
  const operator = /^no such overload: (.+?) (==|!=|<=|>=|[-+*/%<>]|in) (.+)$/.exec(summary);
  if (operator !== null) {
    const [, one = '', sign, other = ''] = operator;
    return `"${sign}" cannot be applied to ${typeWords(one)} and ${typeWords(other)}`;
  }
  const unary = /^no such overload: ([-!])(.+)$/.exec(summary);
  if (unary !== null) return `"${unary[1]}" cannot be applied to ${typeWords(unary[2] ?? '')}`;
  const call = /^found no matching overload for '(?:(.+)\.)?(\w+)\((.*)\)'$/.exec(summary);
  if (call !== null) {
    const [, receiver, name = '', args = ''] = call;
    const types = [
      ...(receiver === undefined ? [] : [receiver]),
      ...(args === '' ? [] : args.split(/, (?![^<]*>)/)),
    ];
    return `${formOf(name) ?? name} cannot be applied to ${types.map(typeWords).join(' and ')}`;
  }
  const condition = /(?:must be bool|must return bool|requires bool operands), got '(.*)'$/.exec(summary);
  if (condition !== null)
    return `A condition is true or false, but this one is ${typeWords(condition[1] ?? '')}`;
  if (summary === 'has() invalid argument') return 'has() takes a field of a name, such as has(record.price)';
  const key = /^No such key: (.*)$/.exec(summary)?.[1];
  if (key !== undefined) {
    const meant = nearest(key, eventFields);
    const advice =
      meant === undefined ? `its fields are ${eventFields.join(', ')}` : `did you mean "${meant}"?`;
    return `An event has no field "${key}"; ${advice}`;
  }
  const index = /^(?:Cannot index type|List index must be int, got|Expression of type) '(.*?)'/.exec(summary);
  if (index === null) return summary;
  const type = typeWords(index[1] ?? '');
  if (summary.startsWith('List')) return `The position in a list is a number, not ${type}`;
  return summary.startsWith('Cannot') ? `${capital(type)} has no fields` : `${capital(type)} is not a list`;
}

/** A type of the library in words. */
export function typeWords(type: string): string {
  if (type.startsWith('list')) return 'a list';
  if (type.startsWith('map')) return 'an object';
  const words: Readonly<Record<string, string>> = {
    int: 'a number',
    double: 'a number',
    string: 'a text',
    bool: 'true or false',
    null: 'null',
    dyn: 'a value',
    Event: 'an event',
    'google.protobuf.Timestamp': 'a timestamp',
    'google.protobuf.Duration': 'a duration',
  };
  return words[type] ?? type;
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
