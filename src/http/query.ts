/** Query parameters, read strictly where they are known and not at all where they are not. */
import { Problem } from '../model/error.ts';

/**
 * Every value of one parameter, in order; empty when it is absent. Other parameters are not looked at, however
 * badly they are encoded.
 *
 * @param query what follows the question mark, as it came
 * @throws Problem `path_invalid` when a value is not valid percent-encoded UTF-8
 */
export function queryValues(query: string, name: string): string[] {
  if (query === '') return [];
  const values: string[] = [];
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const key = equals === -1 ? pair : pair.slice(0, equals);
    if (decode(key) !== name) continue;
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    if (value === undefined) {
      throw new Problem('path_invalid', {
        sentence: `The query parameter \`${name}\` is not valid percent-encoded UTF-8`,
      });
    }
    values.push(value);
  }
  return values;
}

/**
 * The value of a parameter that may be left out.
 *
 * @throws Problem `field_invalid` when it is empty or given more than once; as `queryValues`
 */
export function queryValue(query: string, name: string): string | undefined {
  const values = queryValues(query, name);
  if (values.length > 1 || values[0] === '') {
    throw new Problem('field_invalid', {
      sentence: `The query parameter \`${name}\` must be given once and not be empty, or be left out`,
    });
  }
  return values[0];
}

/** @throws Problem `field_invalid` when it is absent, with what it should be; as `queryValue` */
export function requiredQuery(query: string, name: string, what: string): string {
  const value = queryValue(query, name);
  if (value !== undefined) return value;
  throw new Problem('field_invalid', { sentence: `The query parameter \`${name}\` is missing: ${what}` });
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
