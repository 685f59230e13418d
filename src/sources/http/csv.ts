/** Reads CSV: the first row has the names, and each further row becomes an object. */
import { type CsvSplitter, splitCsv } from '../../std/csv-rows.ts';
import { MalformedError } from '../../std/lines.ts';
import { setField } from './field.ts';
import type { Item } from './items.ts';

const MAX_ROW_CHARACTERS = 16 << 20;
const MAX_COLUMNS = 10_000;
const DELIMITERS = [',', ';', '\t', '|'];

/** A first line that spreadsheets write to name the delimiter. */
const SEPARATOR_LINE = /^(?:\ufeff)?sep=(.)\r?\n/i;
const MAX_SEPARATOR_BYTES = 16;

/** An empty field is left out; an empty field in quotes (`""`) is an empty text. */
export async function* readCsv(
  chunks: AsyncIterable<Uint8Array>,
  delimiter: string | null,
): AsyncGenerator<Item[]> {
  let splitter: CsvSplitter | undefined;
  let names: string[] | undefined;
  let number = 1;

  function objects(rows: readonly (readonly (string | null)[])[]): Item[] {
    const items: Item[] = [];
    for (const row of rows) {
      number += 1;
      if (names === undefined) names = namesOf(row);
      else items.push({ value: objectOf(names, row, number - 1), text: undefined });
    }
    return items;
  }

  function begin(bytes: Uint8Array): Item[] {
    const head = Buffer.from(bytes.subarray(0, MAX_SEPARATOR_BYTES)).toString();
    const [line = '', said] = SEPARATOR_LINE.exec(head) ?? [];
    const rows = bytes.subarray(Buffer.byteLength(line));
    if (line !== '') number += 1;
    splitter = splitCsv(MAX_ROW_CHARACTERS, delimiter ?? said ?? delimiterOf(rows));
    return objects(splitter.push(rows));
  }

  let before: Uint8Array = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (splitter === undefined) {
      // The whole first row is needed to find its delimiter.
      before = Buffer.concat([before, chunk]);
      const needed = delimiter === null ? MAX_ROW_CHARACTERS : MAX_SEPARATOR_BYTES;
      const newline = before.indexOf(10);
      // A short first line may be `sep=;`: then the row after it is needed.
      const isWhole =
        newline >= MAX_SEPARATOR_BYTES || (newline !== -1 && before.indexOf(10, newline + 1) !== -1);
      if (before.length < needed && !isWhole) continue;
      yield begin(before);
    } else yield objects(splitter.push(chunk));
  }
  if (splitter === undefined) yield begin(before);
  yield objects((splitter as unknown as CsvSplitter).end());
  if (names === undefined) throw new MalformedError('It is empty where CSV with a row of names was expected');
}

/** The most frequent delimiter of the first row, outside of quotes. */
function delimiterOf(bytes: Uint8Array): string {
  const [row = ''] = Buffer.from(bytes)
    .toString()
    .replace(/"[^"]*"/g, '')
    .split('\n', 1);
  const counts = DELIMITERS.map((mark) => row.split(mark).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string;
}

function namesOf(row: readonly (string | null)[]): string[] {
  if (row.length > MAX_COLUMNS) throw new MalformedError(`The first row has more than ${MAX_COLUMNS} names`);
  if (row.some((name) => /\r(?!\n)/.test(name ?? ''))) {
    throw new MalformedError(
      'Its first row holds a carriage return: rows that end with one alone, as on old Macs, are not read',
    );
  }
  const taken = new Set<string>();
  const counts = new Map<string, number>();
  for (const [at, name] of row.entries()) {
    const text = name?.trim() || `column${at + 1}`;
    let own = text;
    // A second `email` becomes `email_2`, so that it does not replace the first.
    for (let count = (counts.get(text) ?? 1) + 1; taken.has(own); count++) {
      own = `${text}_${count}`;
      counts.set(text, count);
    }
    taken.add(own);
  }
  return [...taken];
}

function objectOf(
  names: readonly string[],
  row: readonly (string | null)[],
  number: number,
): Record<string, unknown> {
  if (row.length > names.length && row.slice(names.length).some((field) => field !== null)) {
    throw new MalformedError(
      `Row ${number} has ${row.length} fields, and the first row names ${names.length}`,
    );
  }
  const object: Record<string, unknown> = {};
  for (const [at, name] of names.entries()) {
    const value = row[at] ?? null;
    if (value !== null) setField(object, name, value);
  }
  return object;
}
