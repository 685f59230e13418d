/** CSV with a row of names: each further row is an object. */
import { splitCsv } from '../../../std/csv-rows.ts';
import { MalformedError } from '../../../std/splitter.ts';
import type { Item } from './items.ts';

const MAX_ROW_CHARACTERS = 16 << 20;
const MAX_COLUMNS = 10_000;
const DELIMITERS = [',', ';', '\t', '|'];

/** Rows of one stream. An empty field is left out, one in quotes (`""`) is an empty text. */
export async function* readCsv(
  chunks: AsyncIterable<Uint8Array>,
  delimiter: string | null,
): AsyncGenerator<Item[]> {
  let splitter: ReturnType<typeof splitCsv> | undefined;
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

  let before: Uint8Array = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (splitter === undefined) {
      // The first row is needed whole before its delimiter is known.
      before = Buffer.concat([before, chunk]);
      if (delimiter === null && before.length < MAX_ROW_CHARACTERS && before.indexOf(10) === -1) continue;
      splitter = splitCsv(MAX_ROW_CHARACTERS, delimiter ?? delimiterOf(before));
      yield objects(splitter.push(before));
    } else yield objects(splitter.push(chunk));
  }
  if (splitter === undefined) {
    splitter = splitCsv(MAX_ROW_CHARACTERS, delimiter ?? delimiterOf(before));
    yield objects(splitter.push(before));
  }
  yield objects(splitter.end());
  if (names === undefined) throw new MalformedError('It is empty where CSV with a row of names was expected');
}

/** Of the first row, without what stands in quotes. */
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
  return row.map((name, at) => {
    const text = name?.trim() ?? '';
    return text === '' ? `column${at + 1}` : text;
  });
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
    if (value !== null) object[name] = value;
  }
  return object;
}
