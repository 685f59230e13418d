/** Cuts a JSON array into the texts of its elements, without ever holding more than one of them. */
import { isUtf8 } from 'node:buffer';
import { MalformedError, type Splitter } from './lines.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const OPEN_MAP = 0x7b;
const CLOSE_MAP = 0x7d;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/**
 * Splits the text of one JSON array (UTF-8, RFC 8259; a byte order mark is skipped). It looks only at what parts
 * the elements: strings, brackets and commas. Whether an element itself is JSON is for whoever parses it.
 *
 * Bytes are compared without decoding them: in UTF-8 no byte of a longer character equals one of ASCII.
 *
 * @param maxBytes a longer element is a MalformedError
 */
export function splitJsonArray(maxBytes: number): Splitter {
  let state: 'before' | 'first' | 'element' | 'within' | 'after' = 'before';
  let depth = 0;
  let inString = false;
  let isEscaped = false;
  let count = 0;
  let marks = 0;
  let partial: Buffer[] = [];
  let partialBytes = 0;

  function finish(rest: Buffer): string {
    if (partialBytes + rest.length > maxBytes) throw tooLong();
    const bytes = partialBytes === 0 ? rest : Buffer.concat([...partial, rest]);
    partial = [];
    partialBytes = 0;
    count += 1;
    if (!isUtf8(bytes)) throw new MalformedError(`Element ${count} of the array is not UTF-8`);
    return bytes.toString();
  }

  function tooLong(): MalformedError {
    return new MalformedError(`Element ${count + 1} of the array is longer than ${maxBytes} bytes`);
  }

  /** One byte outside of every element. Answers whether an element begins with it. */
  function between(byte: number): boolean {
    if (isSpace(byte)) return false;
    if (state === 'before') {
      if (byte === OPEN) state = 'first';
      else if (byte === BYTE_ORDER_MARK[marks]) marks += 1;
      else throw new MalformedError('The text does not begin with a JSON array: `[`');
      return false;
    }
    if (state === 'after') throw new MalformedError('Something follows the end of the JSON array');
    if (byte === CLOSE && state === 'first') {
      state = 'after';
      return false;
    }
    if (byte === COMMA || byte === CLOSE) {
      throw new MalformedError(`An element is missing after element ${count} of the array`);
    }
    return true;
  }

  return {
    push(bytes) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const elements: string[] = [];
      let start = 0;
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at] as number;
        if (state !== 'within') {
          if (!between(byte)) continue;
          state = 'within';
          start = at;
        }
        if (inString) {
          if (isEscaped) isEscaped = false;
          else if (byte === BACKSLASH) isEscaped = true;
          else if (byte === QUOTE) inString = false;
        } else if (byte === QUOTE) inString = true;
        else if (byte === OPEN_MAP || byte === OPEN) depth += 1;
        else if (depth > 0) {
          if (byte === CLOSE_MAP || byte === CLOSE) depth -= 1;
        } else if (byte === COMMA || byte === CLOSE) {
          elements.push(finish(chunk.subarray(start, at)));
          state = byte === COMMA ? 'element' : 'after';
        }
      }
      if (state === 'within') {
        // A copy: the chunk may be a slice of a larger buffer, which it would hold.
        partial.push(Buffer.from(chunk.subarray(start)));
        partialBytes += chunk.length - start;
        if (partialBytes > maxBytes) throw tooLong();
      }
      return elements;
    },
    end() {
      if (state === 'after') return [];
      if (state === 'before') throw new MalformedError('The text holds no JSON array');
      throw new MalformedError(`The JSON array is not closed: its text ends after element ${count}`);
    },
  };
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
