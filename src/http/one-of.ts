/** Names out of a fixed list, in a query or a body; what was probably meant is said. */
import { Problem } from '../model/error.ts';
import { nearest } from '../std/nearest.ts';
import { queryValue } from './query.ts';

/** The names of a parameter with commas between; nothing when it is left out. */
export function queryNames<T extends string>(
  query: string,
  parameter: string,
  names: readonly T[],
): T[] | undefined {
  return queryValue(query, parameter)
    ?.split(',')
    .map((name) => oneOf(`The query parameter \`${parameter}\``, name.trim(), names));
}

/** @throws Problem `field_invalid` when it is none of the names */
export function oneOf<T extends string>(what: string, name: unknown, names: readonly T[]): T {
  const known = names.find((one) => one === name);
  if (known !== undefined) return known;
  const meant = typeof name === 'string' ? nearest(name, names) : undefined;
  const advice = meant === undefined ? '' : `. Did you mean \`${meant}\`?`;
  throw new Problem('field_invalid', {
    sentence: `${what} takes ${names.join(', ')}, or is left out${advice}`,
  });
}
