/** Starting points for a filter: a question with a field and a value, and the expression that asks it. */

/** The accessor of a field, such as `.price`, `.price.amount` or `["unit price"]`; empty if none is chosen. */
type Accessor = string;

export type StartKind = keyof typeof KINDS;

export interface Start {
  kind: StartKind;
  field: Accessor;
  /** As typed: `5 %`, `50` or a word. */
  value: string;
}

interface Kind {
  /** Completes `Notify me when …`. */
  label: string;
  /** What exactly matches. */
  help: string;
  /** The value that the question needs: a number, a number or a percentage, or a text. */
  asks?: 'number' | 'share' | 'text';
  /** The expression. `value` is a literal, or empty while it is missing. */
  write?: (field: Accessor, value: string) => string;
}

const moves = (name: string) => (field: Accessor, value: string) =>
  `${name}(previous${field}, record${field}, ${value})`;

const KINDS = {
  fallsBy: {
    label: 'a number falls by …',
    help: 'Compares each record with the version before. 5 % is a share of the previous value, 5 is an amount.',
    asks: 'share',
    write: moves('fallsBy'),
  },
  risesBy: {
    label: 'a number rises by …',
    help: 'Compares each record with the version before. 5 % is a share of the previous value, 5 is an amount.',
    asks: 'share',
    write: moves('risesBy'),
  },
  fallsBelow: {
    label: 'a number falls below …',
    help: 'Matches each time that the number goes from this value or more to less than it.',
    asks: 'number',
    write: moves('fallsBelow'),
  },
  risesAbove: {
    label: 'a number rises above …',
    help: 'Matches each time that the number goes from this value or less to more than it.',
    asks: 'number',
    write: moves('risesAbove'),
  },
  crosses: {
    label: 'a number crosses …',
    help: 'Matches each time that the number passes this value, upwards or downwards.',
    asks: 'number',
    write: moves('crosses'),
  },
  added: {
    label: 'a record is added',
    help: 'A record that was removed and comes back is also added.',
    write: () => 'change == "added"',
  },
  removed: {
    label: 'a record is removed',
    help: 'The event contains the record as it was.',
    write: () => 'change == "removed"',
  },
  contains: {
    label: 'a text contains a word',
    help: 'Matches each added or changed record whose text contains the word, in exactly this spelling.',
    asks: 'text',
    write: (field, value) => `record${field}.contains(${value})`,
  },
} satisfies Record<string, Kind>;

export function kindOf(kind: StartKind): Kind {
  return KINDS[kind];
}

export const START_OPTIONS = Object.entries(KINDS).map(([value, { label }]) => ({ value, label }));

/** Whether the question is about a field. */
export function asksField(kind: StartKind): boolean {
  return kindOf(kind).asks !== undefined;
}

/** What is wrong with the value; undefined if nothing is. */
export function valueMistake({ kind, value }: Start): string | undefined {
  if (kindOf(kind).asks === undefined || literalOf(kind, value) !== '') return undefined;
  if (kindOf(kind).asks === 'text') return 'Enter a word';
  return kindOf(kind).asks === 'share' ? 'Enter 5 % or 5, for example' : 'Enter a number, such as 50';
}

/** Whether the field or the value of a starting point is missing. */
export function isUnfinished(start: Start | undefined): boolean {
  if (start === undefined || !asksField(start.kind)) return false;
  return start.field === '' || valueMistake(start) !== undefined;
}

/** The expression; invalid until the field and the value are complete, but `startOf` recognizes it. */
export function expressionOf({ kind, field, value }: Start): string {
  return kindOf(kind).write?.(field, literalOf(kind, value)) ?? '';
}

function literalOf(kind: StartKind, value: string): string {
  const { asks } = kindOf(kind);
  if (asks === 'text') return value.trim() === '' ? '' : JSON.stringify(value);
  const [, number, sign] = /^\s*(-?\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(value) ?? [];
  if (number === undefined || (asks === 'number' && sign === '%')) return '';
  return sign === '%' ? `"${number}%"` : number;
}

const FIELD = String.raw`((?:\.[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"\])*)`;
const FORMS: readonly [RegExp, (found: readonly string[]) => Start][] = [
  [
    new RegExp(
      String.raw`^(fallsBy|risesBy|fallsBelow|risesAbove|crosses)\(previous${FIELD}, .*, "?([^"]*)"?\)$`,
    ),
    ([, kind = '', field = '', value = '']) => ({ kind: kind as StartKind, field, value }),
  ],
  [/^change == "(added|removed)"$/, ([, kind = '']) => ({ kind: kind as StartKind, field: '', value: '' })],
  [
    new RegExp(String.raw`^record${FIELD}\.contains\(((?:"(?:[^"\\]|\\.)*")?)\)$`),
    ([, field = '', value = '']) => ({ kind: 'contains', field, value: textOf(value) }),
  ],
];

/** The starting point that writes exactly this expression; undefined if there is none. */
export function startOf(expression: string): Start | undefined {
  for (const [form, read] of FORMS) {
    const found = form.exec(expression);
    const start = found === null ? undefined : read(found);
    if (start !== undefined && expressionOf(start) === expression) return start;
  }
  return undefined;
}

function textOf(literal: string): string {
  try {
    return String(JSON.parse(literal));
  } catch {
    return '';
  }
}

/** A field that records have. */
export interface Field {
  /** Its name, or names with dots for a nested field. */
  label: string;
  accessor: Accessor;
  /** The type of its first value that is not null. */
  type: 'number' | 'text' | 'other';
}

/** Further fields are not offered. */
const MAX_FIELDS = 200;

/** The fields of some records in order of appearance; those of objects inside records follow their object. */
export function fieldsIn(records: readonly object[]): Field[] {
  const fields = new Map<Accessor, Field>();
  const add = (names: readonly string[], value: unknown) => {
    const accessor = names.map(accessorOf).join('');
    const before = fields.get(accessor);
    if (value !== null && (before === undefined || before.type === 'other'))
      fields.set(accessor, { label: names.join('.'), accessor, type: typeOf(value) });
    if (typeof value !== 'object' || value === null || Array.isArray(value) || names.length > 1) return;
    for (const [name, inner] of Object.entries(value)) add([...names, name], inner);
  };
  for (const record of records) for (const [name, value] of Object.entries(record)) add([name], value);
  return [...fields.values()].slice(0, MAX_FIELDS);
}

function typeOf(value: unknown): Field['type'] {
  return typeof value === 'number' ? 'number' : typeof value === 'string' ? 'text' : 'other';
}

/** Words that the language reserves, which must not follow a dot. */
const RESERVED =
  /^(?:in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while|true|false|null)$/;

function accessorOf(name: string): Accessor {
  return /^[A-Za-z_]\w*$/.test(name) && !RESERVED.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

/** The accessor of a field that was typed: one of those that are known, or names with dots. */
export function typedField(text: string, fields: readonly Field[]): Accessor {
  const known = fields.find(({ label }) => label === text.trim());
  if (known !== undefined) return known.accessor;
  return text.trim() === '' ? '' : text.trim().split('.').map(accessorOf).join('');
}

/** The name of an accessor as a person types it. */
export function labelOf(accessor: Accessor, fields: readonly Field[]): string {
  const known = fields.find((field) => field.accessor === accessor);
  return (
    known?.label ??
    accessor
      .replace(/^\./, '')
      .replaceAll(/\["((?:[^"\\]|\\.)*)"\]/g, '.$1')
      .replace(/^\./, '')
  );
}

/** The fields that a question is usually about come first; the id is rarely one of them. */
export function fieldsFor(kind: StartKind, fields: readonly Field[]): Field[] {
  const type = kindOf(kind).asks === 'text' ? 'text' : 'number';
  const rank = (field: Field) => (field.type === type ? 0 : 2) + (field.accessor === '.id' ? 1 : 0);
  return fields.toSorted((a, b) => rank(a) - rank(b));
}
