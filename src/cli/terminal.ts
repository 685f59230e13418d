/** What a command writes and asks: data on standard output, messages and questions on standard error; tables; Ctrl-C. */
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { durationWords } from '../std/amounts.ts';
import { printable } from '../std/printable.ts';
import type { Screen } from '../std/progress-bar.ts';
import { UsageError } from './exit.ts';
import type { Options } from './options.ts';

let isQuiet = false;

/** Suppresses messages from now on, or prints them again. */
export function beQuiet(wanted: boolean): void {
  isQuiet = wanted;
}

/** One line, or several; `--quiet` suppresses them. */
export function say(text: string): void {
  screen.write(`${printable(text)}\n`);
}

/** An error, a line of a log, or what must be known even with `--quiet`. */
export function warn(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Where live lines and progress bars are drawn. */
export const screen: Screen = {
  get isTTY() {
    return !isQuiet && process.stderr.isTTY === true;
  },
  get columns() {
    return process.stderr.columns;
  },
  write(text) {
    return isQuiet || process.stderr.write(text);
  },
};

/**
 * Prints the value with `--json`, otherwise the lines. Lines may contain text from outside (names of events, answers of
 * receivers), so control characters, which a terminal would obey, are removed; of JSON only on a terminal.
 */
export function print(options: Options, value: unknown, lines: readonly string[]): void {
  const text = options.json === true ? [forTerminal(JSON.stringify(value))] : lines.map(printable);
  process.stdout.write(text.map((line) => `${line}\n`).join(''));
}

/**
 * Writes more than fits into memory, as fast as it is read; a pipe or a file gets the bytes as they are. A reader that
 * stops early (`head`) is no error.
 */
export async function toOutput(bytes: AsyncIterable<Uint8Array>, last = ''): Promise<void> {
  const written = process.stdout.isTTY === true ? printableBytes(bytes) : bytes;
  try {
    await pipeline(Readable.from(written, { objectMode: false }), process.stdout, { end: false });
    if (last !== '') process.stdout.write(last);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

function forTerminal(text: string): string {
  return process.stdout.isTTY === true ? printable(text) : text;
}

async function* printableBytes(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  // A character may begin in one chunk and end in the next.
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    const text = printable(decoder.decode(chunk, { stream: true }));
    if (text !== '') yield text;
  }
}

export interface Question {
  /** What will happen, and to how much: `3 records of "people" will be erased for good`. */
  what: string;
  /** What is true if the user does not agree: `nothing was erased`. */
  otherwise: string;
  /** A name that must be typed, for what hurts most; without one, `y` or `yes` agrees. */
  name?: string;
}

/** Adds `--yes`, with which `confirm` does not ask. */
export function addYes(command: Command): Command {
  return command.option('--yes', 'do not ask (for scripts)');
}

/**
 * Asks on standard error, unless `--yes` was given, and reads one line from the terminal. Without one it refuses at once:
 * a pipe may stay open without end, and in a loop over lines the next one is not meant as an answer.
 *
 * @throws UsageError unless the user agrees
 */
export async function confirm(options: Options, { what, otherwise, name }: Question): Promise<void> {
  if (options.yes === true) return;
  if (process.stdin.isTTY !== true) {
    throw new UsageError(`${what}. This is no terminal to ask on, so ${otherwise}. Say --yes to go on`);
  }
  const how = name === undefined ? 'Go on? [y/N] ' : `Type ${name} to go on: `;
  // Not by `say`: even with --quiet, the user must know what is asked.
  process.stderr.write(printable(`${what}. ${how}`));
  const answer = await readAnswer();
  // Where nobody has pressed Enter, the next line would continue this one.
  if (answer === undefined) process.stderr.write('\n');
  if (name === undefined ? /^y(es)?$/i.test(answer ?? '') : answer === name) return;
  throw new UsageError(`Not confirmed, so ${otherwise}. In scripts, say --yes`);
}

/** The first line of standard input; undefined when that has ended. */
async function readAnswer(): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line.trim();
    return undefined;
  } finally {
    lines.close();
    process.stdin.pause();
  }
}

/** What ended the last command early, as an exit code. */
let endedBy: number | undefined;

const TIMED_OUT = 7;

export interface Patience {
  /** What the signal is aborted with. */
  reason?: Error;
  /** How long the command may take, in milliseconds. */
  withinMs?: number | undefined;
  /** Ctrl-C is how the command ends, and no failure. */
  isEnd?: boolean;
}

/**
 * A signal that is aborted by the first SIGINT or SIGTERM, or when the time is over; the next SIGINT or SIGTERM ends the
 * process at once. Unless `isEnd`, the exit code is then 130, 143 or 7, whatever the command sets: see `endedEarly`.
 *
 * @returns `clear` must be called at the end: until then neither signal ends the process
 */
export function untilInterrupted({ reason, withinMs, isEnd = false }: Patience = {}): {
  signal: AbortSignal;
  clear(): void;
} {
  const abort = new AbortController();
  const end = (signal: NodeJS.Signals) => {
    const code = 128 + constants.signals[signal];
    if (abort.signal.aborted) process.exit(code);
    if (!isEnd) endedBy = code;
    abort.abort(reason);
  };
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.on(name, end);
  const timer = setTimeout(() => {
    endedBy = TIMED_OUT;
    abort.abort(reason);
  }, withinMs ?? 0);
  if (withinMs === undefined) clearTimeout(timer);
  return {
    signal: abort.signal,
    clear: () => {
      clearTimeout(timer);
      for (const name of names) process.off(name, end);
    },
  };
}

/** The exit code for what ended the command early, if anything did; the next call returns undefined. */
export function endedEarly(): number | undefined {
  const code = endedBy;
  endedBy = undefined;
  return code;
}

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
