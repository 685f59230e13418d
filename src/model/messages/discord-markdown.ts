/** Escapes texts for Discord. A module of its own, because erasures search for texts in this form. */

/**
 * Escapes the Markdown of Discord, and what it makes of mentions, times, emoji and addresses. The escaped text is shown as
 * it is, also at the beginning of a line. Within words, `_` means nothing.
 */
export function escapedMarkdown(text: string): string {
  return text
    .replace(/[\\*~`|<>[\]()#:]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, '\\$&')
    .replace(/^[-+]/, '\\$&')
    .replace(/^(\d+)\./, '$1\\.');
}
