/**
 * Messages on standard error. All may hold text from outside (names, errors, what receivers answer), so nothing that a
 * terminal would obey gets through.
 */

import { printable } from '../std/printable.ts';
import type { Screen } from '../std/progress-bar.ts';

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
