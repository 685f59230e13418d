/** Markdown tables with any text in their cells: bars and angle brackets are escaped. */

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map(line).join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.map(plain).join(' | ')} |`;
}

/** In `code` an angle bracket needs no escape, but a bar would end the cell even there. */
function plain(text: string): string {
  return text
    .replaceAll('\n', ' ')
    .replaceAll('|', '\\|')
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replace(/<(?!br>)/g, '&lt;')))
    .join('');
}
