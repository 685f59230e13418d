/** Escapes texts for XML 1.0 and HTML. */

import { escapedHtml } from '../../std/escaped-html.ts';

/** Characters that XML 1.0 forbids, even as references, and `U+FFFE`, which some parsers take for a byte order mark. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to replace
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufdd0-\ufdef\ufffe\uffff]/g;
const REPLACED = '\ufffd';
/** The text for an element or an attribute. */
export function escaped(text: string): string {
  return escapedHtml(text.toWellFormed().replace(FORBIDDEN, REPLACED));
}
