/** What a command writes and asks: data on standard output, messages and questions on standard error; and Ctrl-C. */

import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
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
