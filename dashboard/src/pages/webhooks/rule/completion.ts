/** Completion of names in a filter or template. */
import type { Field } from './starts.ts';

export interface Suggestion {
  /** As it is shown and searched: `record.price`, `fallsBy(before, after, "5%")`. */
  label: string;
  /** The text that replaces the word before the cursor. */
  text: string;
  help: string;
}

/** What is known about the events of a webhook. */
export interface Known {
  fields: readonly Field[];
  /** Paths below `data`, such as `version` and `records.added`. */
  data: readonly string[];
}

const FUNCTIONS: readonly [signature: string, help: string][] = [
  ['fallsBy(before, after, "5%")', 'The number fell by at least this share, or by at least this amount'],
  ['risesBy(before, after, "5%")', 'The number rose by at least this share, or by at least this amount'],
  ['fallsBelow(before, after, 50)', 'The number was 50 or more, and is now less'],
  ['risesAbove(before, after, 50)', 'The number was 50 or less, and is now more'],
  ['crosses(before, after, 50)', 'The number passed 50, upwards or downwards'],
  ['timestamp(event.timestamp)', 'A time, which can be compared; also of a field with a time in ISO 8601'],
  ['double("9.50")', 'The number in a text'],
  ['size(value)', 'The length of a text or list'],
];
const METHODS: readonly [signature: string, help: string][] = [
  ['contains("word")', 'The text contains this text'],
  ['startsWith("word")', 'The text starts with this text'],
  ['endsWith("word")', 'The text ends with this text'],
  ['matches("a|b")', 'A part of the text matches this regular expression'],
  ['lowerAscii()', 'The text in lower case'],
  ['size()', 'The length of the text or list'],
  ['exists(item, item == "a")', 'At least one item of the list meets a condition'],
  ['getDayOfWeek("UTC")', 'The day of a time: 0 is Sunday'],
  ['getHours("UTC")', 'The hour of a time'],
];
const NAMES: readonly [name: string, help: string][] = [
  ['change', '"added", "changed" or "removed"'],
  ['changed', 'The names of the fields that differ'],
  ['id', 'The id of the record'],
  ['event.type', 'The type of the event, such as workflow_data_change'],
  ['event.workflowId', 'The workflow'],
  ['event.jobId', 'The run'],
  ['event.timestamp', 'When it happened, as a text'],
  ['event.id', 'The id of the event'],
  ['event.sequence', 'The number of the event'],
];
/** Starts an expression in a template. */
const OPEN = '\u0024{';
/** At most this many are offered at a time. */
const MAX_OFFERED = 50;

/**
 * What may follow at the cursor.
 *
 * @param at the position of the cursor
 * @returns `from`: where the word starts that an option replaces. No options within a text literal, and in a template
 *   only between `${` and `}`
 */
export function suggestionsAt(
  source: string,
  at: number,
  { known, isTemplate = false }: { known: Known; isTemplate?: boolean },
): { from: number; options: Suggestion[] } {
  const open = isTemplate ? source.lastIndexOf(OPEN, at - 1) : -2;
  const before = source.slice(open + 2, at);
  const word = /(?:[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"?\]?|\.)*$/.exec(before)?.[0] ?? '';
  const from = at - word.length;
  if (
    (isTemplate && (open < 0 || before.includes('}'))) ||
    isInText(before.slice(0, before.length - word.length))
  )
    return { from, options: [] };
  const wanted = plain(word);
  const all = [
    ...namesOf(known, isTemplate),
    ...methodsAfter(word, from > 0 && before.at(-word.length - 1) === ')'),
  ];
  const starting = all.filter(({ label }) => plain(label).startsWith(wanted));
  const containing = all.filter(
    (option) => !starting.includes(option) && plain(option.label).includes(wanted),
  );
  const options = [...starting, ...containing].filter(({ text }) => text !== word).slice(0, MAX_OFFERED);
  return { from, options };
}

function namesOf({ fields, data }: Known, isTemplate: boolean): Suggestion[] {
  const name = (text: string, help: string) => ({ label: text, text, help });
  const field = (of: string, when: string) =>
    fields.map(({ accessor, type }) => name(of + accessor, `${TYPES[type]} ${when}`));
  return [
    ...field('record', 'after the change'),
    name('record', 'The record after the change; null if it was removed'),
    ...field('previous', 'before the change'),
    name('previous', 'The record before the change; null if it was added'),
    ...NAMES.map(([text, help]) => name(text, help)),
    ...(isTemplate ? [name('differences', 'All differences that are sent')] : []),
    ...FUNCTIONS.map(callOf),
    // Last, because there may be many.
    ...data.map((path) => name(`data.${path}`, 'Data of the event')),
  ];
}

const TYPES: Record<Field['type'], string> = { number: 'Number', text: 'Text', other: 'Value' };

/** Methods can follow any value but the names that consist of fields only. */
function methodsAfter(word: string, isResult: boolean): Suggestion[] {
  const [, value] = /^(.*)\.\w*$/s.exec(word) ?? [];
  if (value === undefined || (!isResult && /^(?:record|previous|event|data|)$/.test(value))) return [];
  return METHODS.map(([signature, help]) => {
    const { label, text } = callOf([signature, help]);
    return { label: `${value}.${label}`, text: `${value}.${text}`, help };
  });
}

/** The name up to the parenthesis, behind which the cursor stays; with it, if there are no arguments. */
function callOf([signature, help]: readonly [string, string]): Suggestion {
  return { label: signature, text: signature.replace(/\([^)].*$/, '('), help };
}

/** Quotes and case do not matter in a search. */
function plain(text: string): string {
  return text.toLowerCase().replaceAll(/\["?/g, '.').replaceAll(/"?\]/g, '');
}

function isInText(source: string): boolean {
  const rest = source.replaceAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '');
  return /["']/.test(rest);
}
