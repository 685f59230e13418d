/** Escapes texts for XML 1.0 and HTML. */
import { escapedHtml } from '../../std/escaped-html.ts';

/** Control characters, which XML 1.0 forbids or discourages, and code points that are no characters. */
const FORBIDDEN = /(?![\t\n\r])[\p{Cc}\p{Noncharacter_Code_Point}]/gu;

/** The text for an element or an attribute. */
export function escaped(text: string): string {
  return escapedHtml(text.toWellFormed().replace(FORBIDDEN, ''));
}
