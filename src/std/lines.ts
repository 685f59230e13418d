/** Splits a stream of bytes into lines, chunk by chunk. */
import { isUtf8 } from 'node:buffer';

const LINE_FEED = 0x0a;

/**
 * Splits UTF-8 text into lines. Blank lines are skipped. CRLF, a byte order mark and a last line without a line break
 * are accepted.
 *
 * @param maxBytes maximum length of a line
 * @throws MalformedError (from `push` and `end`) if a line is too long or the bytes are not UTF-8
 */
export function splitLines(maxBytes: number): Splitter {
  let partial: Buffer[] = [];
  let partialBytes = 0;
  let count = 0;

  function take(bytes: Buffer): string[] {
    if (!isUtf8(bytes)) throw new MalformedError(`The text after line ${count} is not UTF-8`);
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
      // Chunks are far smaller than `maxBytes`, so only a line that started in an earlier chunk can be too long.
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

/** Splits one stream into pieces. Pass the chunks of the stream to `push` in order, then call `end`. */
export interface Splitter {
  /** Returns the pieces that this chunk completes. @throws MalformedError */
  push(chunk: Uint8Array): string[];
  /** Returns the pieces that the end of the stream completes. @throws MalformedError if the stream cannot end here */
  end(): string[];
}

/** Thrown if bytes do not have the expected format. The message says what is wrong and where. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError';
}
