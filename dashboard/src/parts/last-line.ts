/** The sentence of a failure that is nearest to its cause, of all that a program said. */

/** What a program said last; the frames of a stack trace, which come below it, say nothing in a list. */
export function lastLine(error: string): string {
  const lines = error.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => !FRAME.test(line)) ?? lines.at(-1) ?? error;
}

/** `    at failing (file:///…)`, and the bracket below the last one of an error with further fields. */
const FRAME = /^\s+at |^\}?$/;
