/** Replaces the placeholders `${state.NAME}` and `${page}` in the texts of a request. */

const PLACE = /\$\{(?:state\.(\w+)|(page))\}/g;

/** Values of the placeholders. */
export interface Values {
  state: ReadonlyMap<string, string>;
  page: number | undefined;
}

/** The state names that a text refers to. */
export function statesIn(text: string): string[] {
  return [...text.matchAll(PLACE)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** @returns undefined, for a text to be left out, when it consists of nothing but placeholders without a value */
export function fillIn(
  text: string,
  values: Values,
  encode: (value: string) => string = String,
): string | undefined {
  let missing = false;
  const filled = text.replace(PLACE, (_place, name: string | undefined) => {
    const value = name === undefined ? values.page : values.state.get(name);
    if (value === undefined) missing = true;
    return encode(String(value ?? ''));
  });
  return missing && filled === '' ? undefined : filled;
}

/** Does the same in every text of a JSON value. Members whose text is left out are removed. */
export function fillInAll(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return fillIn(value, values);
  if (Array.isArray(value)) return value.map((one) => fillInAll(one, values) ?? null);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => {
      const filled = fillInAll(one, values);
      return filled === undefined ? [] : [[name, filled]];
    }),
  );
}
