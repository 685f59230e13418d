/** Splits CSV (RFC 4180) into rows of fields. */
import { MalformedError } from './lines.ts';

const ENDS_QUOTED = /"/g;

/** The text of a field: null if there is nothing between two commas, `''` for `""`. */
export type CsvField = string | null;

/** A `Splitter` that returns rows instead of texts. */
export interface CsvSplitter {
  push(chunk: Uint8Array): CsvField[][];
  end(): CsvField[][];
}

/**
 * Splits UTF-8 CSV. A comma (or another delimiter) separates fields, and CRLF or LF separates rows. `"` encloses fields
 * that contain a delimiter or a line break; `""` is a quote in such a field. Blank lines and a byte order mark are
 * skipped. Quotes inside a field that does not start with a quote are ordinary characters.
 *
 * @param maxLength maximum number of characters per row
 * @throws MalformedError (from `push` and `end`) if a row is too long, text follows a closing quote, a quoted field is
 *   not closed, or the bytes are not UTF-8
 */
export function splitCsv(maxLength: number, delimiter = ','): CsvSplitter {
  const endsPlain = new RegExp(`[${RegExp.escape(delimiter)}\\n]`, 'g');
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let state: 'start' | 'plain' | 'quoted' | 'closed' = 'start';
  let field = '';
  let row: CsvField[] = [];
  let rowLength = 0;
  let number = 1;

  function decode(chunk: Uint8Array | undefined): string {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      throw new MalformedError(`The text after row ${number - 1} is not UTF-8`);
    }
  }

  function endField(): void {
    row.push(state === 'start' ? null : field);
    field = '';
    state = 'start';
  }

  function endRow(rows: CsvField[][]): void {
    const isBlank = row.length === 0 && state === 'start';
    endField();
    if (!isBlank) rows.push(row);
    row = [];
    rowLength = 0;
    number += 1;
  }

  /**
   * Adds the text before the next special character to the field.
   *
   * @returns the position of the special character
   */
  function gather(text: string, from: number, meaning: RegExp): number {
    meaning.lastIndex = from;
    const found = meaning.exec(text);
    const to = found === null ? text.length : found.index;
    field += text.slice(from, to);
    rowLength += to - from;
    if (rowLength > maxLength) {
      throw new MalformedError(
        `Row ${number} is longer than ${maxLength} characters. A closing quote may be missing`,
      );
    }
    return to;
  }

  function read(text: string): CsvField[][] {
    const rows: CsvField[][] = [];
    for (let at = 0; at < text.length; at++) {
      if (state === 'plain') at = gather(text, at, endsPlain);
      else if (state === 'quoted') at = gather(text, at, ENDS_QUOTED);
      if (at === text.length) break;
      const character = text[at];
      rowLength += 1;
      if (state === 'quoted') state = 'closed';
      else if (state === 'closed' && character === '"') {
        field += '"';
        state = 'quoted';
      } else if (character === delimiter) endField();
      else if (character === '\n') {
        if (state === 'plain' && field.endsWith('\r')) field = field.slice(0, -1);
        // If a row ends with a carriage return and nothing else follows the last delimiter, the carriage return is not
        // a field.
        if (state === 'plain' && field === '') state = 'start';
        endRow(rows);
      } else if (state === 'closed') {
        if (character === '\r') continue;
        throw new MalformedError(
          `Row ${number}: there is text after the closing quote of field ${row.length + 1}`,
        );
      } else if (character === '"') state = 'quoted';
      else {
        state = 'plain';
        at -= 1;
        rowLength -= 1;
      }
    }
    return rows;
  }

  return {
    push: (chunk) => read(decode(chunk)),
    end() {
      const rows = read(decode(undefined));
      if (state === 'quoted') throw new MalformedError(`Row ${number}: a quoted field is not closed`);
      if (state !== 'start' || row.length > 0) rows.push(...read('\n'));
      return rows;
    },
  };
}
