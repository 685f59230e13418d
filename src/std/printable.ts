/** Text from outside, made fit for a log and for a terminal. */

/** Control characters but for tab and line feed, line separators, and those that change the direction of text. */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069]/gu;

/** Removes what a terminal would act upon instead of showing: escape and bell characters, backspaces, bidi controls. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}
