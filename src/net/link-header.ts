/** Reads the `Link` header (RFC 8288). */

/** Where the link of a relation leads, as it is written: relative to the answer's own address. */
export function linkTo(relation: string, header: string | undefined): string | undefined {
  for (const [, target, params = ''] of (header ?? '').matchAll(
    /<([^>]*)>((?:\s*;\s*[^\s=;,]+\s*(?:=\s*(?:"[^"]*"|[^\s;,"]*))?)*)/g,
  )) {
    const relations = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))/i.exec(params);
    const names = (relations?.[1] ?? relations?.[2] ?? '').toLowerCase().split(/\s+/);
    if (names.includes(relation)) return target;
  }
  return undefined;
}
