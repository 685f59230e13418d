/** Query parameters that are whole numbers. */
import { Problem } from '../model/error.ts';
import { queryValue } from './query.ts';

/** @throws Problem `field_invalid` unless it is a whole number from `least` to `most`, or left out */
export function queryNumber(
  query: string,
  name: string,
  { least, most }: { least: number; most: number },
): number | undefined {
  const text = queryValue(query, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw new Problem('field_invalid', {
    sentence: `The query parameter \`${name}\` must be a whole number ${range}, or be left out`,
  });
}

/** A version's number. 0 is what was there before the first published run: nothing. */
export function queryVersion(query: string, name: string): number | undefined {
  return queryNumber(query, name, { least: 0, most: Number.MAX_SAFE_INTEGER });
}
