/** Cuts JSON arrays into the texts of their elements, without ever holding more than one of them. */
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
/** Limit of the text around the array that is kept, which is metadata and does not grow with the elements. */
const MAX_AROUND_BYTES = 16 << 20;

/**
 * Splits a text that is one JSON array and nothing else; a byte order mark is skipped.
 *
 * @param maxBytes a longer element is a MalformedError
 */
export function splitJsonArray(maxBytes: number): Splitter {
  /** What came around the array, without white space. */
  let seen = '';
  let count = 0;
  const splitter = splitElements([], maxBytes, (bytes) => {
    seen = (seen + bytes.toString('latin1').replace(/[ \t\r\n]+/g, '')).replace(/^\xef\xbb\xbf/, '');
    if (['', '\xef', '\xef\xbb', '[', '[]'].includes(seen)) return;
    throw new MalformedError(
      seen.startsWith('[')
        ? 'Something follows the end of the JSON array'
        : 'The text does not begin with a JSON array: `[`',
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
          : 'The text holds no JSON array',
      );
    },
  };
}

export interface ElementSplitter extends Splitter {
  /** After `end`: the JSON text without the elements, unless `outside` took it. */
  around(): string;
  /** Whether the array exists. */
  found(): boolean;
}

/**
 * Cuts the elements of one array out of a JSON text (UTF-8). It looks only at what parts them: strings, brackets and
 * commas. Whether an element itself is JSON is for whoever parses it. Bytes are compared without decoding them: in UTF-8
 * no byte of a longer character equals one of ASCII.
 *
 * @param steps the property names that lead from the root to the array; none if the root is the array
 * @param maxBytes limit of an element; `push` throws MalformedError for a longer one
 * @param outside is given the text around the array, which is then not kept
 */
export function splitElements(
  steps: readonly string[],
  maxBytes: number,
  outside?: (bytes: Buffer) => void,
): ElementSplitter {
  let depth = 0;
  /** How many of the steps the open containers match. */
  let matched = 0;
  let inString = false;
  let escaped = false;
  /** The bytes of the string that is being read, if it is a name on the way to the array. */
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
        'What stands around the records is longer than 16 MiB. Does `records` lead to them?',
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

  /** The end of the string, or of the chunk. `indexOf` finds quotes faster than a loop would. */
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
          // What is before an element does not count as part of it.
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
              // One brace too many belongs to the element, which is then no JSON; the array is not closed by it.
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
            if (depth < 0) throw new MalformedError('A bracket is closed that was not opened');
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
        // Copied, because the chunk may be a slice of a larger buffer, which would be kept alive.
        partial.push(Buffer.from(left));
        partialBytes += left.length;
        if (partialBytes > maxBytes) throw tooLong();
      } else keepAround(left);
      return elements;
    },
    end() {
      if (depth > 0 || inString) {
        throw new MalformedError(
          `The JSON text breaks off${count === 0 ? '' : ` after record ${count}`}: it is not closed`,
        );
      }
      if (!anything && !rootEnded && Buffer.concat(around).toString().trim() === '') {
        throw new MalformedError('The answer is empty where JSON was expected');
      }
      return [];
    },
  };

  function isStep(position: number): boolean {
    return lastName !== undefined && lastName === steps[position];
  }
}

/** Only what JSON knows as white space: `trim` removes more, and would make JSON of what is none. */
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** How many backslashes are directly before a position. */
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
