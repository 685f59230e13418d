/** Cursors, which are opaque to clients and mark a place in a list; and the `link` header to the next page. */
import { Problem } from '../model/error.ts';
import { queryValue } from './query.ts';

/** A cursor that holds some whole numbers. */
export function makeCursor(numbers: readonly number[]): string {
  return Buffer.from(JSON.stringify(numbers)).toString('base64url');
}

/**
 * The numbers in the query's cursor; undefined without one.
 *
 * @param lengths how many numbers a cursor of this operation may hold
 * @throws Problem `field_invalid` when this operation cannot have made it
 */
export function cursorFrom(query: string, lengths: readonly number[]): number[] | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const numbers = parse(text);
  if (numbers === undefined || !lengths.includes(numbers.length)) refuse();
  return numbers;
}

/** A cursor that holds an id: the last of a page. */
export function makeIdCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/**
 * The id in the query's cursor; undefined without one.
 *
 * @param isId whether a list of this operation can hold it
 * @throws Problem `field_invalid` when this operation cannot have made it
 */
export function idCursorFrom(query: string, isId: (text: string) => boolean): string | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const id = Buffer.from(text, 'base64url').toString();
  // Decoding tolerates characters that encoding never writes.
  if (makeIdCursor(id) !== text || !isId(id)) refuse();
  return id;
}

/** A `link` header to the same request with another cursor. @param name of the parameter that holds it */
export function nextLink(path: string, query: string, cursor: string, name = 'cursor'): string {
  const others = query.split('&').filter((pair) => pair !== '' && nameOf(pair) !== name);
  return `<${path}?${[...others.map(uriSafe), `${name}=${cursor}`].join('&')}>; rel="next"`;
}

/** The name of a `name=value` pair, percent-decoded. */
function nameOf(pair: string): string {
  const [name = ''] = pair.split('=');
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Encodes characters of a raw query that must not stand between `<` and `>`. */
function uriSafe(pair: string): string {
  return pair.replace(/[^\w\-.~!$'()*+,;:@/?%=]/g, (character) => encodeURIComponent(character));
}

function refuse(): never {
  throw new Problem('field_invalid', {
    sentence:
      'The query parameter `cursor` must be one that this operation gave, with the same other parameters. ' +
      'Leave it out to begin at the start',
  });
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
