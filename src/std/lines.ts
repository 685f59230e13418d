/** Cuts a stream of bytes into pieces of text, chunk by chunk: here, into lines. */
import { isUtf8 } from 'node:buffer';

const LINE_FEED = 0x0a;

/**
 * Splits UTF-8 text into its lines. Blank lines are left out; CRLF, a byte order mark and a last line without a
 * line break are fine.
 *
 * @param maxBytes a longer line, and bytes that are not UTF-8, are a MalformedError
 */
export function splitLines(maxBytes: number): Splitter {
  let partial: Buffer[] = [];
  let partialBytes = 0;
  let count = 0;

  function take(bytes: Buffer): string[] {
    if (!isUtf8(bytes)) throw new MalformedError(`What follows line ${count} is not UTF-8`);
    const text = bytes.toString();
    const lines = (count === 0 && text.startsWith('\ufeff') ? text.slice(1) : text).split('\n');
    count += lines.length;
    return lines
      .filter((line) => line.trim() !== '')
      .map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  }

  return {
    push(bytes) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const first = chunk.indexOf(LINE_FEED);
      // Only the line that began in an earlier chunk can be too long: a chunk itself is far smaller.
      if (partialBytes + (first === -1 ? chunk.length : first) > maxBytes) {
        throw new MalformedError(`Line ${count + 1} is longer than ${maxBytes} bytes`);
      }
      const last = chunk.lastIndexOf(LINE_FEED);
      const lines = last === -1 ? [] : take(Buffer.concat([...partial, chunk.subarray(0, last)]));
      if (last !== -1) {
        partial = [];
        partialBytes = 0;
      }
      if (last + 1 < chunk.length) partial.push(chunk.subarray(last + 1));
      partialBytes += chunk.length - last - 1;
      return lines;
    },
    end: () => (partialBytes === 0 ? [] : take(Buffer.concat(partial))),
  };
}

/** Fed with the chunks of one stream, in order, and told at its end. */
export interface Splitter {
  /** The pieces that this chunk completes. Throws a MalformedError. */
  push(chunk: Uint8Array): string[];
  /** The pieces that the end of the stream completes. Throws a MalformedError when the stream cannot end here. */
  end(): string[];
}

/** Raised when the bytes do not have the form that they should have; the message says where and what. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError';
}
