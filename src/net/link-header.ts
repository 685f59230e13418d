/** Parses the `Link` header (RFC 8288). */

/** The target of the first link with this relation, as written: relative to the URL of the response. */
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
