/** Messages beside the data, on standard error. `--quiet` leaves them out; what is wrong is said all the same. */
import type { Screen } from '../std/live-line.ts';

let isQuiet = false;

/** Whether nothing is said from now on. */
export function beQuiet(wanted: boolean): void {
  isQuiet = wanted;
}

/** One line, or several. */
export function say(text: string): void {
  screen.write(`${text}\n`);
}

/** Where live lines and progress are drawn. */
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
