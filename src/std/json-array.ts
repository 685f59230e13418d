/** Splits JSON arrays into the texts of their elements, with at most one element in memory. */
import { isUtf8 } from 'node:buffer';
import { MalformedError, type Splitter } from './lines.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const OPEN_MAP = 0x7b;
const CLOSE_MAP = 0x7d;
/**
 * Maximum length of the text around the array. This text is metadata, which does not grow with the number of elements.
 */
const MAX_AROUND_BYTES = 16 << 20;

/**
 * Splits a text that consists of one JSON array. A byte order mark is skipped.
 *
 * @param maxBytes maximum length of an element
 * @throws MalformedError (from `push` and `end`) if an element is too long or the text is not a JSON array
 */
export function splitJsonArray(maxBytes: number): Splitter {
  /** The text before and after the array, without white space. */
  let seen = '';
  let count = 0;
  const splitter = splitElements([], maxBytes, (bytes) => {
    seen = (seen + bytes.toString('latin1').replace(/[ \t\r\n]+/g, '')).replace(/^\xef\xbb\xbf/, '');
    if (['', '\xef', '\xef\xbb', '[', '[]'].includes(seen)) return;
    throw new MalformedError(
      seen.startsWith('[')
        ? 'There is text after the end of the JSON array'
        : 'The text does not start with a JSON array (`[`)',
    );
  });
  return {
    push(bytes) {
      const elements = splitter.push(bytes);
      count += elements.length;
      return elements;
    },
    end() {
      if (seen === '[]') return [];
      throw new MalformedError(
        seen === '['
          ? `The JSON array is not closed: its text ends after element ${count}`
          : 'The text contains no JSON array',
      );
    },
  };
}

export interface ElementSplitter extends Splitter {
  /**
   * Returns the JSON text without the elements of the array, unless `outside` received this text. Call this method
   * after `end`.
   */
  around(): string;
  /** Whether the array exists. */
  found(): boolean;
}

/**
 * Extracts the elements of one array from a JSON text (UTF-8). The splitter looks only at strings, brackets and commas,
 * and does not check whether an element is valid JSON. Bytes are compared without decoding, because in UTF-8 no byte of
 * a longer character is equal to an ASCII byte.
 *
 * @param steps the property names that lead from the root to the array; none if the root is the array
 * @param maxBytes maximum length of an element; `push` throws MalformedError for a longer element
 * @param outside receives the text around the array, which the splitter then does not keep
 */
export function splitElements(
  steps: readonly string[],
  maxBytes: number,
  outside?: (bytes: Buffer) => void,
): ElementSplitter {
  let depth = 0;
  /** Number of `steps` that lead to the current position. */
  let matched = 0;
  let inString = false;
  let escaped = false;
  /** The bytes of the current string, if the string is a property name on the way to the array. */
  let name: number[] | undefined;
  let lastName: string | undefined;
  let expectsName = false;
  let within = false;
  let done = false;
  let count = 0;
  const around: Buffer[] = [];
  let aroundBytes = 0;
  let partial: Buffer[] = [];
  let partialBytes = 0;
  let rootEnded = false;
  let anything = false;

  function keepAround(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (outside !== undefined) {
      outside(bytes);
      return;
    }
    around.push(Buffer.from(bytes));
    aroundBytes += bytes.length;
    if (aroundBytes > MAX_AROUND_BYTES) {
      throw new MalformedError(
        'The text around the records is longer than 16 MiB. Does `records` point to the array of records?',
      );
    }
  }

  function finish(rest: Buffer): string | undefined {
    if (partialBytes + rest.length > maxBytes) throw tooLong();
    const bytes = partialBytes === 0 ? rest : Buffer.concat([...partial, rest]);
    partial = [];
    partialBytes = 0;
    if (bytes.length === 0) return undefined;
    if (!isUtf8(bytes)) throw new MalformedError(`Element ${count + 1} of the array is not UTF-8`);
    let end = bytes.length;
    while (isSpace(bytes[end - 1])) end -= 1;
    count += 1;
    return bytes.toString('utf8', 0, end);
  }

  function tooLong(): MalformedError {
    return new MalformedError(`Element ${count + 1} of the array is longer than ${maxBytes} bytes`);
  }

  /**
   * The end of the string, or of the chunk if the string continues. `indexOf` finds quotes faster than a loop would.
   */
  function endOfString(chunk: Buffer, from: number): number {
    for (let quote = chunk.indexOf(QUOTE, from); quote !== -1; quote = chunk.indexOf(QUOTE, quote + 1)) {
      if (backslashes(chunk, from, quote) % 2 === 0) return quote;
    }
    escaped = backslashes(chunk, from, chunk.length) % 2 === 1;
    return chunk.length;
  }

  return {
    found: () => count > 0 || done || within,
    around: () => Buffer.concat(around).toString(),
    push(bytes) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const elements: string[] = [];
      let start = 0;
      let at = 0;
      while (at < chunk.length) {
        const byte = chunk[at] as number;
        if (inString) {
          if (escaped) {
            escaped = false;
            name?.push(byte);
          } else if (byte === BACKSLASH) {
            escaped = true;
            name?.push(byte);
          } else if (byte === QUOTE) {
            inString = false;
            if (name !== undefined) lastName = nameOf(name);
            name = undefined;
          } else if (name !== undefined) {
            name.push(byte);
          } else {
            at = endOfString(chunk, at);
            continue;
          }
          at += 1;
          continue;
        }
        if (within && at === start && partialBytes === 0 && isSpace(byte)) {
          // White space before an element is not part of the element.
          at += 1;
          start = at;
          continue;
        }
        switch (byte) {
          case QUOTE:
            anything = true;
            inString = true;
            name = expectsName && !within ? [] : undefined;
            break;
          case OPEN_MAP:
          case OPEN: {
            anything = true;
            const isPlace: boolean =
              !within && !done && depth === matched && (depth === 0 || isStep(matched - 1));
            if (isPlace && matched === steps.length && byte === OPEN) {
              within = true;
              depth += 1;
              keepAround(chunk.subarray(start, at + 1));
              start = at + 1;
              expectsName = false;
              break;
            }
            if (isPlace && matched < steps.length && byte === OPEN_MAP) {
              matched += 1;
              expectsName = true;
            } else if (!within) expectsName = false;
            lastName = undefined;
            depth += 1;
            break;
          }
          case CLOSE_MAP:
          case CLOSE:
            if (within && depth === matched + 1) {
              // An extra brace belongs to the element, which is then invalid JSON. It does not close the array.
              if (byte === CLOSE_MAP) break;
              const element = finish(chunk.subarray(start, at));
              if (element !== undefined) elements.push(element);
              else if (count > 0)
                throw new MalformedError(`An element is missing after element ${count} of the array`);
              within = false;
              done = true;
              start = at;
            }
            depth -= 1;
            if (depth < 0)
              throw new MalformedError(
                'The JSON text contains a closing bracket that has no opening bracket',
              );
            if (!within && depth < matched) matched = depth;
            if (depth === 0) rootEnded = true;
            expectsName = false;
            break;
          case COMMA:
            if (within && depth === matched + 1) {
              const element = finish(chunk.subarray(start, at));
              if (element === undefined)
                throw new MalformedError(`An element is missing after element ${count} of the array`);
              elements.push(element);
              start = at + 1;
            } else if (!within && depth === matched && depth > 0) {
              expectsName = true;
              lastName = undefined;
            }
            break;
          case COLON:
            if (!within) expectsName = false;
            break;
        }
        at += 1;
      }
      const left = chunk.subarray(start);
      if (within) {
        // The bytes are copied, because the chunk may be a slice of a larger buffer, which would otherwise be kept
        // alive.
        partial.push(Buffer.from(left));
        partialBytes += left.length;
        if (partialBytes > maxBytes) throw tooLong();
      } else keepAround(left);
      return elements;
    },
    end() {
      if (depth > 0 || inString) {
        throw new MalformedError(
          `The JSON text is incomplete: it ends${count === 0 ? '' : ` after record ${count},`} before all of its brackets are closed`,
        );
      }
      if (!anything && !rootEnded && Buffer.concat(around).toString().trim() === '') {
        throw new MalformedError('The response is empty, but should be JSON');
      }
      return [];
    },
  };

  function isStep(position: number): boolean {
    return lastName !== undefined && lastName === steps[position];
  }
}

/** Removes white space as JSON defines it. `trim` removes more characters, and so would accept invalid JSON. */
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Number of backslashes directly before a position. */
function backslashes(chunk: Buffer, from: number, before: number): number {
  let at = before;
  while (at > from && chunk[at - 1] === BACKSLASH) at -= 1;
  return before - at;
}

function nameOf(bytes: readonly number[]): string | undefined {
  try {
    return JSON.parse(`"${Buffer.from(bytes).toString()}"`) as string;
  } catch {
    return undefined;
  }
}
