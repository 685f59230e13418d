/**
 * Terminal input and output: data on standard output, messages and questions on standard error, tables, confirmations
 * and Ctrl-C.
 */
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { printable } from '../std/printable.ts';
import type { Screen } from '../std/progress-bar.ts';
import type { Command } from './command.ts';
import { UsageError } from './exit.ts';
import type { Options } from './options.ts';
import { relativeWords } from './times.ts';

let isQuiet = false;

/** Turns `--quiet` on or off. With `--quiet`, `say` prints nothing. */
export function beQuiet(wanted: boolean): void {
  isQuiet = wanted;
}

/** Prints a message to standard error, unless `--quiet` is on. */
export function say(text: string): void {
  screen.write(`${printable(text)}\n`);
}

/** Prints an error, a log line or an essential message to standard error, even with `--quiet`. */
export function warn(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** The terminal that shows live lines and progress bars. */
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
 * Prints the value with `--json`, otherwise the lines. Lines may contain text from other systems (event names,
 * responses of receivers). Control characters are removed from lines, because a terminal would obey them. From JSON,
 * control characters are removed only on a terminal.
 */
export function print(options: Options, value: unknown, lines: readonly string[]): void {
  const text = options.json === true ? [forTerminal(JSON.stringify(value))] : lines.map(printable);
  process.stdout.write(text.map((line) => `${line}\n`).join(''));
}

/**
 * Streams bytes to standard output as fast as its reader accepts them. Control characters are removed only on a
 * terminal. A reader that stops early, such as `head`, is not an error.
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
  // A character may be split across chunks.
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    const text = printable(decoder.decode(chunk, { stream: true }));
    if (text !== '') yield text;
  }
}

export interface Question {
  /** What will happen, with amounts: `3 records of "people" will be permanently erased`. */
  what: string;
  /** The result if the user does not confirm: `nothing was erased`. */
  otherwise: string;
  /**
   * The user must type this name to confirm the most destructive commands. If the name is undefined, `y` or `yes`
   * confirms.
   */
  name?: string;
}

/** Adds `--yes`, which makes `confirm` skip its question. */
export function addYes(command: Command): Command {
  return command.option('--yes', 'skip the confirmation (for scripts)');
}

/**
 * Asks for confirmation on standard error, unless `--yes` is set, and reads one line from the terminal. Fails
 * immediately if standard input is not a terminal, because a pipe may stay open without end, and in a shell loop over
 * lines the next line is not a reply.
 *
 * @throws UsageError unless the user confirms
 */
export async function confirm(options: Options, { what, otherwise, name }: Question): Promise<void> {
  if (options.yes === true) return;
  if (process.stdin.isTTY !== true) {
    throw new UsageError(
      `${what}. Standard input is not a terminal, so this command cannot ask for confirmation, and ${otherwise}. Confirm with --yes`,
    );
  }
  const how = name === undefined ? 'Continue? [y/N] ' : `Type ${name} to continue: `;
  // The question is not printed with `say`, because `say` prints nothing with --quiet.
  process.stderr.write(printable(`${what}. ${how}`));
  const answer = await readAnswer();
  // If the user has not pressed Enter, the next message would continue the line of the question.
  if (answer === undefined) process.stderr.write('\n');
  if (name === undefined ? /^y(es)?$/i.test(answer ?? '') : answer === name) return;
  throw new UsageError(`You did not confirm, so ${otherwise}. In scripts, confirm with --yes`);
}

/** Returns the first line of standard input; undefined if standard input ends first. */
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

/** The exit code of the last command if a signal or a timeout ended it early. */
let endedBy: number | undefined;

const TIMED_OUT = 7;

export interface Patience {
  /** The reason of the abort. */
  reason?: Error;
  /** The maximum duration of the command in milliseconds. */
  withinMs?: number | undefined;
  /** Whether Ctrl-C is the normal way to end the command, with exit code 0. */
  isEnd?: boolean;
}

/**
 * Returns an abort signal. The first SIGINT or SIGTERM aborts it, and so does the end of `withinMs`. The next SIGINT or
 * SIGTERM ends the process immediately. Afterwards, `endedEarly` returns the exit code 130, 143 or 7, which overrides
 * the exit code of the command. If `isEnd` is true, SIGINT and SIGTERM do not set this exit code.
 *
 * @returns `clear` must be called at the end, because until then the first SIGINT or SIGTERM does not end the process
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

/**
 * Returns the exit code if a signal or a timeout ended the command early; otherwise undefined. A second call returns
 * undefined.
 */
export function endedEarly(): number | undefined {
  const code = endedBy;
  endedBy = undefined;
  return code;
}

/**
 * Wraps lines between words at `width` characters. Continuation lines have the same indentation as the original line.
 */
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
 * Formats lines of the form `name  value`, with aligned values. A name whose value is null or undefined is left out.
 */
export function fields(
  rows: readonly (readonly [name: string, value: string | null | undefined])[],
): string[] {
  return columns(rows.flatMap(([name, value]) => (value == null ? [] : [[name, value]])));
}

/** The heading of a column. */
export interface Head {
  name: string;
  /**
   * On a narrow terminal, columns are dropped in ascending order of `drop`. A column without `drop` is never dropped.
   */
  drop?: number;
}

/**
 * Formats rows as a table for a terminal: with headings, with relative times instead of ISO times, and no wider than
 * the terminal. On a narrow terminal, columns with `drop` are dropped first. Then the widest columns are cut, but not
 * below `LEAST_WIDTH`. Ids are not cut, because people copy them. Without a terminal the rows stay unchanged, so that
 * programs can read them.
 *
 * @param width the width of the terminal in characters; undefined if there is no terminal
 */
export function table(
  rows: readonly (readonly string[])[],
  width: number | undefined,
  heads: readonly Head[] = [],
  nowMs: number = Date.now(),
): string[] {
  if (width === undefined || rows.length === 0) return columns(rows);
  const titles = heads.map(({ name }) => name.toUpperCase());
  const cell = (text: string) => text.replace(TIME, (iso) => relativeWords(iso, nowMs));
  const shown = [...(heads.length === 0 ? [] : [titles]), ...rows.map((row) => row.map(cell))];
  return fitted(withoutDropped(shown, width, heads), width);
}

/**
 * Matches an ISO time that is alone in a cell or follows a few words: `expires 2026-11-22T10:00:00.000Z`. A time after
 * `until` does not match, because `until in 3 days` would be wrong.
 */
const TIME = /(?<=^[a-z ]*)(?<!until )\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const LEAST_WIDTH = 12;
/**
 * The minimum width of a column that can be dropped. The column is dropped instead, because fewer characters are
 * useless.
 */
const WORTH_SHOWING = 20;
/**
 * The width to which columns that are never dropped are cut before another column is dropped. A whole id or half a
 * sentence fits in this width.
 */
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
    // Long texts are cut to a useful width before a column is dropped.
    const least = left.map((one, place) =>
      Math.min(one, places[place]?.drop === undefined ? ENOUGH : WORTH_SHOWING),
    );
    if (total(least) <= width) break;
    gone.push(at);
    kept = rows.map((row) => row.filter((_, place) => !gone.includes(place)));
  }
  return kept;
}

/** Cuts a text at its end. A URL is cut in its middle, because URLs usually differ at the end. */
function cut(cell: string, most: number): string {
  if (cell.length <= most) return cell;
  if (!/^https?:/.test(cell)) return `${cell.slice(0, most - 1)}…`;
  const end = (most - 1) >> 1;
  return `${cell.slice(0, most - 1 - end)}…${cell.slice(cell.length - end)}`;
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
