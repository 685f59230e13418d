/** Lines and tables for a terminal. */

/** Breaks lines between words at `width` characters; continuation lines keep the indent. */
export function wrapped(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [indent = ''] = /^ */.exec(line) ?? [];
      const lines: string[] = [];
      let rest = line;
      for (;;) {
        const at = rest.lastIndexOf(' ', width);
        if (rest.length <= width || at <= indent.length) return [...lines, rest];
        lines.push(rest.slice(0, at));
        rest = indent + rest.slice(at + 1);
      }
    })
    .join('\n');
}

/** Rows as lines with aligned columns. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = widthsOf(rows);
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/**
 * The same, no wider than the terminal: the widest columns are cut, but not ids, which people copy, and no column
 * below `LEAST_WIDTH`.
 *
 * @param width of the terminal in characters; undefined: there is none, nothing is cut
 */
export function table(rows: readonly (readonly string[])[], width: number | undefined): string[] {
  const widths = widthsOf(rows);
  const fixed = widths.map((_, at) => rows.some((row) => /^[a-z]+_[0-9a-z]{26}$/.test(row[at] ?? '')));
  const total = () => widths.reduce((sum, one) => sum + one + 2, -2);
  while (width !== undefined && total() > width) {
    const widest = Math.max(0, ...widths.filter((_, at) => !fixed[at]));
    if (widest <= LEAST_WIDTH) break;
    const at = widths.findIndex((one, place) => one === widest && !fixed[place]);
    widths[at] = Math.max(LEAST_WIDTH, widest - Math.max(1, Math.min(total() - width, widest >> 2)));
  }
  const cut = (cell: string, most: number) => (cell.length > most ? `${cell.slice(0, most - 1)}…` : cell);
  return columns(rows.map((row) => row.map((cell, at) => cut(cell, widths[at] ?? cell.length))));
}

const LEAST_WIDTH = 12;

function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return widths;
}
