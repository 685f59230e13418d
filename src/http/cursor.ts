/** Cursors: opaque to clients, a place in a list to us. And the link to what follows. */
import { Problem } from '../model/error.ts';
import { queryValue } from './query.ts';

/** A cursor that holds some whole numbers. */
export function makeCursor(numbers: readonly number[]): string {
  return Buffer.from(JSON.stringify(numbers)).toString('base64url');
}

/**
 * The numbers of the query's cursor, or nothing without one.
 *
 * @param lengths how many numbers a cursor of this operation may hold
 * @throws Problem `field_invalid` when it is none that this operation gave
 */
export function cursorFrom(query: string, lengths: readonly number[]): number[] | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const numbers = parse(text);
  if (numbers === undefined || !lengths.includes(numbers.length)) {
    throw new Problem('field_invalid', {
      sentence:
        'The query parameter `cursor` must be one that this operation gave, with the same other parameters. ' +
        'Leave it out to begin at the start',
    });
  }
  return numbers;
}

/** The value of a `link` header that names the same request with another cursor. */
export function nextLink(path: string, query: string, cursor: string): string {
  const others = query.split('&').filter((pair) => pair !== '' && !/^cursor(=|$)/.test(pair));
  return `<${path}?${[...others.map(uriSafe), `cursor=${cursor}`].join('&')}>; rel="next"`;
}

/** A query as it came may hold what has no place between `<` and `>`. */
function uriSafe(pair: string): string {
  return pair.replace(/[^\w\-.~!$'()*+,;:@/?%=]/g, (character) => encodeURIComponent(character));
}

function parse(text: string): number[] | undefined {
  if (text.length > 200) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    const isCursor = Array.isArray(value) && value.every((one) => Number.isSafeInteger(one) && one >= 0);
    return isCursor ? value : undefined;
  } catch {
    return undefined;
  }
}
