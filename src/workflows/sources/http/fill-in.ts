/** Puts `${state.NAME}` and `${page}` into the texts of a request. */

const PLACE = /\$\{(?:state\.(\w+)|(page))\}/g;

/** What a request can be filled with. */
export interface Values {
  state: ReadonlyMap<string, string>;
  page: number | undefined;
}

/** The names of the states that a text mentions. */
export function statesIn(text: string): string[] {
  return [...text.matchAll(PLACE)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** @returns undefined when the text is nothing but one value, and there is none: it is then left out */
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

/** Likewise in every text of a value; a member that is left out is not there. */
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
