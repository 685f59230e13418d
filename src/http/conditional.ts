/** Conditional and range requests: `If-None-Match`, `Range` and `If-Range` (RFC 9110). */
import { Problem } from '../model/error.ts';

/** Whether `If-None-Match` names this tag, weak or strong. `*` names every tag. */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, one]) => one === tag);
}

/**
 * The requested bytes, `end` excluded; undefined when the whole body is to be sent: without a range, with several, with
 * one that cannot be parsed, or with an `If-Range` that names another tag.
 *
 * @throws Problem `range_not_satisfiable`
 */
export function rangeOf(
  headers: { range?: string | undefined; 'if-range'?: string | string[] | undefined },
  body: { tag: string; bytes: number },
): { start: number; end: number } | undefined {
  const found = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(headers.range ?? '');
  if (found === null) return undefined;
  if (headers['if-range'] !== undefined && headers['if-range'] !== body.tag) return undefined;
  const [, from = '', to = ''] = found;
  if (from === '' && to === '') return undefined;
  const start = from === '' ? Math.max(0, body.bytes - Number(to)) : Number(from);
  const end = from === '' || to === '' ? body.bytes : Math.min(body.bytes, Number(to) + 1);
  if (from !== '' && to !== '' && Number(to) < start) return undefined;
  if (start >= body.bytes || end === start) {
    throw new Problem('range_not_satisfiable', { headers: { 'content-range': `bytes */${body.bytes}` } });
  }
  return { start, end };
}
