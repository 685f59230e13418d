/** Redacts log fields and trace attributes: keys, secrets, passwords, query strings of URLs, email addresses. */
import { createRequire } from 'node:module';
import type * as Pino from 'pino';

const require = createRequire(import.meta.url);

const HIDDEN = '***';
/** Maximum length of a text. */
const MAX_TEXT = 4_096;
/** Limits per log line: fields and list items in total, items of one list, and levels of nesting. */
const MAX_VALUES = 200;
const MAX_ITEMS = 50;
const MAX_DEPTH = 6;

/** Fields whose value is always secret. */
const SECRET_NAME =
  /^(?:x-api-key|cookie|set-cookie|(?:proxy-)?authorization|webhook-signature|.*(?:api_?key|password|passphrase|passwd|secret|secrets|token|private_?key))$/i;
/** Fields of a PostgreSQL error that contain the row, or the SQL statement with its values. */
const ROW_NAME = /^(?:detail|where|internalQuery)$/;

/**
 * Matches texts that may contain a secret. This quick check precedes the other patterns, because most texts contain no
 * secrets.
 */
const SUSPICIOUS = /[@?]|%40|fh_|whsec_|:\/\/|\b(?:bearer|basic) /i;
const URL_LIKE = /([a-z][a-z0-9+.-]{0,30}:\/\/)(?:[^\s/?#"'<>]{0,1000}@)?([^\s?#"'<>]*)([?#][^\s"'<>]*)?/gi;
/** Matches a path with a query string but without a host. */
const QUERY = /(^|[\s"'(=])(\/[^\s?"'<>]{0,2000})\?[^\s"'<>]+/g;
const KEY = /\b(fh|whsec)_[A-Za-z0-9_+/=-]{8,}/g;
const CREDENTIALS = /\b(bearer|basic) +(?=\S*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{4,}/gi;
/**
 * Matches plain and percent-encoded email addresses. All repetitions in the pattern are limited, so that no text makes
 * matching slow.
 */
const EMAIL =
  /[\p{L}\p{N}.!#$%&'*+^_~-]{1,64}(?:@|%40)(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}[\p{L}\p{N}-]{1,62}/gu;

/** Removes secrets and personal data from a text, and truncates it to 4,096 characters. */
export function redactText(text: string): string {
  const short =
    text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)} … (${text.length - MAX_TEXT} more)` : text;
  if (!SUSPICIOUS.test(short)) return short;
  return short
    .replace(URL_LIKE, (_, scheme: string, rest: string, query?: string) =>
      query === undefined ? scheme + rest : `${scheme}${rest}${query[0]}${HIDDEN}`,
    )
    .replace(QUERY, `$1$2?${HIDDEN}`)
    .replace(KEY, `$1_${HIDDEN}`)
    .replace(CREDENTIALS, `$1 ${HIDDEN}`)
    .replace(EMAIL, HIDDEN);
}

/**
 * Redacts the fields of a log line at every level. An error becomes an object with its type, message, stack and fields.
 */
export function redactFields(fields: Record<string, unknown>): Record<string, unknown> {
  return redactObject(fields, { left: MAX_VALUES, depth: 0, isInError: false });
}

/** Progress through one log line, shared by all values of the line. */
interface Walk {
  /** Values that may still be visited. */
  left: number;
  depth: number;
  /** Whether the current value belongs to an error. */
  isInError: boolean;
}

function redactObject(fields: object, walk: Walk): Record<string, unknown> {
  const redacted: Record<string, unknown> = {};
  for (const name in fields) {
    const value = (fields as Record<string, unknown>)[name];
    if (walk.left <= 0) break;
    walk.left -= 1;
    const isHidden = value !== null && (SECRET_NAME.test(name) || (walk.isInError && ROW_NAME.test(name)));
    redacted[name] = isHidden ? HIDDEN : redactValue(value, walk);
  }
  return redacted;
}

function redactValue(value: unknown, walk: Walk): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (walk.depth >= MAX_DEPTH) return '…';
  const { isInError } = walk;
  walk.depth += 1;
  try {
    if (value instanceof Error) {
      walk.isInError = true;
      const { stdSerializers } = require('pino') as typeof Pino;
      return redactObject(stdSerializers.err(value), walk);
    }
    if (Array.isArray(value)) return redactList(value, walk);
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
    const { toJSON } = value as { toJSON?: () => unknown };
    return typeof toJSON === 'function' ? redactValue(toJSON.call(value), walk) : redactObject(value, walk);
  } finally {
    walk.depth -= 1;
    walk.isInError = isInError;
  }
}

function redactList(list: readonly unknown[], walk: Walk): unknown[] {
  const kept = list.slice(0, Math.max(0, Math.min(MAX_ITEMS, walk.left)));
  walk.left -= kept.length;
  const redacted = kept.map((item) => redactValue(item, walk));
  return kept.length === list.length ? redacted : [...redacted, `… (${list.length - kept.length} more)`];
}
