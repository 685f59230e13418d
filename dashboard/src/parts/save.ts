/** Gives the reader a file. */

/** @param type such as `text/plain` */
export function save(name: string, content: string | Blob, type?: string): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: type ?? 'text/plain' }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
