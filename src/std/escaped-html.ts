/** Escapes texts for HTML. */

const REFERENCES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a text for the content of an HTML or XML element, or for an attribute in quotes. */
export function escapedHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => REFERENCES[character] as string);
}
