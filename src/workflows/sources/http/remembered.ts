/** What a run leaves for the next: the values that `state` names, and what tells that nothing has changed. */
import type { Remember } from '../../../model/http-source.ts';
import { compileText, textOfValue } from './field.ts';
import type { Grammar } from './grammar.ts';

/** By which a server tells whether an answer has changed. */
export interface Validators {
  etag?: string;
  lastModified?: string;
}

const EXAMPLE = 60;

/** As it is kept between runs. */
export interface KeptState {
  values?: Record<string, string>;
  /** Of answers that the run was made of, by the SHA-256 of their URLs; `of` tells of which definition. */
  answers?: { of: string; validators: Record<string, Validators> };
}

export function readState(state: unknown): KeptState {
  return typeof state === 'object' && state !== null ? (state as KeptState) : {};
}

export interface Remembering {
  /** What requests are filled with: what the last run left, else the `initial` of the definition. */
  values: ReadonlyMap<string, string>;
  /** Looks at a part that is a record. Undefined when nothing is to be taken from records. */
  look: ((part: unknown, grammar: Grammar) => void) | undefined;
  /** What to say in the log about values that were left out. */
  sentences(): string[];
  /** The values for the next run. */
  left(): Record<string, string>;
}

/** @param startedAt ISO 8601 */
export function remember(
  definitions: Readonly<Record<string, Remember>>,
  kept: KeptState,
  startedAt: string,
): Remembering {
  const values = new Map<string, string>();
  for (const [name, { initial }] of Object.entries(definitions)) {
    const value = kept.values?.[name] ?? initial;
    if (typeof value === 'string') values.set(name, value.toWellFormed());
  }
  const left = new Map(values);
  const fresh = new Set<string>();
  const strange = new Map<string, { count: number; example: string }>();
  const takers = Object.entries(definitions).flatMap(([name, one]) =>
    one.take === 'start' ? [] : [{ name, ...one }],
  );
  const finders = new Map<Grammar, ((part: unknown) => unknown)[]>();

  function look(part: unknown, grammar: Grammar): void {
    let finds = finders.get(grammar);
    if (finds === undefined) {
      finds = takers.map(({ from }) => {
        const { find } = compileText(from, grammar, { trim: true });
        return (of: unknown) => find(of)[0];
      });
      finders.set(grammar, finds);
    }
    for (const [at, { name, take, initial }] of takers.entries()) {
      // Half of a character would fail every request that it is put into.
      const text = textOfValue(finds[at]?.(part)).toWellFormed();
      if (text === '') continue;
      const before = left.get(name);
      const ordered = take === 'max' || take === 'min';
      const differs = ordered && before !== undefined && kindOf(before) !== kindOf(text);
      if (differs && before !== initial) {
        const { count, example } = strange.get(name) ?? { count: 0, example: text };
        strange.set(name, { count: count + 1, example });
        continue;
      }
      const replaces =
        before === undefined ||
        // What holds before the first run may be anything, such as 0 for a time.
        differs ||
        take === 'last' ||
        (take === 'first'
          ? !fresh.has(name)
          : take === 'max'
            ? compare(text, before) > 0
            : !fresh.has(name) || compare(text, before) < 0);
      fresh.add(name);
      if (replaces) left.set(name, text);
    }
  }

  return {
    values,
    look: takers.length === 0 ? undefined : look,
    sentences: () =>
      [...strange].map(
        ([name, { count, example }]) =>
          `The state \`${name}\` was left as it is by ${count} values of another kind than before, such as ${JSON.stringify(example.slice(0, EXAMPLE))}`,
      ),
    left() {
      for (const [name, { take }] of Object.entries(definitions))
        if (take === 'start') left.set(name, startedAt);
      return Object.fromEntries(left);
    },
  };
}

/** As numbers where both are, as moments where both are times with a zone, else as text. */
function compare(a: string, b: string): number {
  if (NUMBER.test(a) && NUMBER.test(b))
    return a.length < 16 && b.length < 16
      ? Number(a) - Number(b)
      : Number(BigInt(a.split('.')[0] as string) - BigInt(b.split('.')[0] as string));
  if (TIME.test(a) && TIME.test(b)) return Date.parse(a) - Date.parse(b);
  return a < b ? -1 : a > b ? 1 : 0;
}

const NUMBER = /^-?\d+(?:\.\d+)?$/;
const DAY = /^\d{4}-\d\d-\d\d/;
const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*(?:Z|[+-]\d\d:?\d\d)$/;

function kindOf(text: string): 'number' | 'time' | 'text' {
  return NUMBER.test(text) ? 'number' : DAY.test(text) ? 'time' : 'text';
}
