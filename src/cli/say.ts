/** Messages on standard error, which `--quiet` suppresses. Errors do not go through here: they are always printed. */
import type { Screen } from '../std/live-line.ts';

let isQuiet = false;

/** Suppresses messages from now on, or prints them again. */
export function beQuiet(wanted: boolean): void {
  isQuiet = wanted;
}

/** One line, or several. */
export function say(text: string): void {
  screen.write(`${text}\n`);
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
