/** Text from outside, made fit for a log and for a terminal. */

/** Control characters but for tab and line end, and those that turn the direction of what follows. */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu;

/** Leaves out what would not be seen but would act: escape sequences of either kind, backspaces, bells, bidi marks. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}
