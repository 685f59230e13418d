/** A strict CSV parser (RFC 4180), to check the CSV of the service. */
import assert from 'node:assert/strict';

/** The rows with their cells. @throws if the text violates the RFC */
export function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; at < text.length; ) {
    let cell = '';
    if (text[at] === '"') {
      const end = /^"((?:[^"]|"")*)"/.exec(text.slice(at, at + 100_000));
      assert.ok(end !== null, `an unclosed quote at ${at}`);
      cell = (end[1] ?? '').replaceAll('""', '"');
      at += end[0].length;
    } else {
      const rest = /[",\r\n]|$/.exec(text.slice(at, at + 100_000));
      cell = text.slice(at, at + (rest?.index ?? 0));
      at += cell.length;
    }
    row.push(cell);
    if (text[at] === ',') {
      at += 1;
      if (at === text.length || text.startsWith('\r\n', at)) row.push('');
      else continue;
    }
    assert.ok(text.startsWith('\r\n', at), `no line break at ${at}`);
    at += 2;
    rows.push(row);
    row = [];
  }
  return rows;
}
