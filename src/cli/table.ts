/** Lines and tables for a terminal. */
import { durationWords } from '../std/amounts.ts';

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

/** A column as a terminal shows it. */
export interface Head {
  name: string;
  /** Left out of a terminal that is too narrow for all; the lowest number goes first. Without one it always stays. */
  drop?: number;
}

/**
 * The same for a terminal: under headings, with times as people say them, and no wider than it is. Where there is too
 * little room, columns with `drop` are left out, then the widest are cut, but not ids, which people copy, and no column
 * below `LEAST_WIDTH`. Without a terminal, the rows as they are: programs read them.
 *
 * @param width of the terminal in characters; undefined: there is none
 */
export function table(
  rows: readonly (readonly string[])[],
  width: number | undefined,
  heads: readonly Head[] = [],
  nowMs: number = Date.now(),
): string[] {
  if (width === undefined || rows.length === 0) return columns(rows);
  const titles = heads.map(({ name }) => name.toUpperCase());
  const shown = [...(heads.length === 0 ? [] : [titles]), ...rows.map((row) => row.map(timeAt(nowMs)))];
  return fitted(withoutDropped(shown, width, heads), width);
}

const LEAST_WIDTH = 12;
/** Of a column that may be left out: fewer characters say nothing. */
const WORTH_SHOWING = 20;
/** Of a column that stays: a whole id, and the beginning of a sentence. */
const ENOUGH = 32;

function fitted(rows: readonly (readonly string[])[], width: number): string[] {
  const widths = widthsOf(rows);
  const fixed = widths.map((_, at) => rows.some((row) => /^[a-z]+_[0-9a-z]{26}$/.test(row[at] ?? '')));
  while (total(widths) > width) {
    const widest = Math.max(0, ...widths.filter((_, at) => !fixed[at]));
    if (widest <= LEAST_WIDTH) break;
    const at = widths.findIndex((one, place) => one === widest && !fixed[place]);
    widths[at] = Math.max(LEAST_WIDTH, widest - Math.max(1, Math.min(total(widths) - width, widest >> 2)));
  }
  return columns(rows.map((row) => row.map((cell, at) => cut(cell, widths[at] ?? cell.length))));
}

function withoutDropped(
  rows: readonly (readonly string[])[],
  width: number,
  heads: readonly Head[],
): readonly (readonly string[])[] {
  const order = heads
    .flatMap(({ drop }, at) => (drop === undefined ? [] : [{ at, drop }]))
    .sort((a, b) => a.drop - b.drop);
  let kept = rows;
  const gone: number[] = [];
  for (const { at } of order) {
    const left = widthsOf(kept);
    const places = heads.flatMap((head, place) => (gone.includes(place) ? [] : [head]));
    // Long texts are cut before anything goes, down to what still says something.
    const least = left.map((one, place) =>
      Math.min(one, places[place]?.drop === undefined ? ENOUGH : WORTH_SHOWING),
    );
    if (total(least) <= width) break;
    gone.push(at);
    kept = rows.map((row) => row.filter((_, place) => !gone.includes(place)));
  }
  return kept;
}

/** URLs differ in their ends: they lose their middle. */
function cut(cell: string, most: number): string {
  if (cell.length <= most) return cell;
  if (!/^https?:/.test(cell)) return `${cell.slice(0, most - 1)}…`;
  const end = (most - 1) >> 1;
  return `${cell.slice(0, most - 1 - end)}…${cell.slice(cell.length - end)}`;
}

/** `3 min ago`, `in 2 h` for an ISO time; other texts as they are. */
function timeAt(nowMs: number): (cell: string) => string {
  return (cell) => {
    if (!/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(cell)) return cell;
    const ms = Date.parse(cell) - nowMs;
    const [amount = '', unit = ''] = durationWords(Math.max(1_000, Math.abs(ms))).split(' ');
    const whole = `${Math.floor(Number(amount))} ${unit}`;
    return ms > 0 ? `in ${whole}` : `${whole} ago`;
  };
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one + 2, -2);
}

function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return widths;
}
