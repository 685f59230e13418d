/** Writes records as CSV (RFC 4180): one column for each field, nested values as JSON text. */
import { parseExactly } from '../model/record.ts';

/** Text that a spreadsheet would evaluate as a formula, and so is escaped by `'`. Plain numbers with a sign are not. */
const FORMULA = /^[=+\-@\t\r]/;
const PLAIN_NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** The header row, with its line break. */
export function csvHeader(columns: readonly string[]): string {
  return row(columns);
}

/** One record's row, with its line break. Fields without a column are left out. */
export function csvRow(json: string, columns: readonly string[]): string {
  const record = parseExactly(json) as Record<string, unknown>;
  return row(columns.map((column) => (Object.hasOwn(record, column) ? textOf(record[column]) : '')));
}

function row(cells: readonly string[]): string {
  // A row with one empty cell would be an empty line, which CSV readers skip.
  if (cells.length === 1 && cells[0] === '') return '""\r\n';
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(text: string): string {
  const safe = FORMULA.test(text) && !PLAIN_NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
