/** Headers as one types them: a line each. */

/** @throws Error that names the line that is none */
export function headersFrom(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(':');
    const name = line.slice(0, at).trim();
    if (at < 1 || name === '') throw new Error(`“${line.trim()}” is no header: write name: value`);
    headers[name] = line.slice(at + 1).trim();
  }
  return headers;
}
