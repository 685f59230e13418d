/** Decodes the body of a response: decompresses it, converts it to UTF-8, and detects its format. */
import { isUtf8 } from 'node:buffer';
import type { Readable, Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import type { Parse } from '../../model/http-source.ts';
import { decompressed } from '../../std/decompress.ts';
import { UnreadableError } from './request.ts';

/** Number of bytes to examine to detect the format and the character set. */
const PEEKED_BYTES = 64 * 1024;
/**
 * Maximum number of content encodings of one response. Each encoding needs a decoder with its own memory. Servers use
 * one encoding, rarely two.
 */
const MAX_ENCODINGS = 4;

/** What the definition and the headers say about a body. */
interface BodyHints {
  parse: Parse | null;
  charset: string | null;
  contentType: string;
  contentEncoding: string;
  url: string;
}

export interface Body {
  parse: Parse;
  /** The name of the character set in which the body arrived. */
  charset: string;
  /** A warning for the log, set if the response claims to be UTF-8 but is not. */
  warning: string | undefined;
  /** The body in UTF-8. If the body was converted to UTF-8, its byte order mark is removed. */
  chunks: AsyncIterable<Uint8Array>;
}

/** @throws UnreadableError; any error of the stream */
export async function openBody(raw: Readable, hints: BodyHints): Promise<Body> {
  const source = withoutCompression(await peek(raw, 4), hints.contentEncoding);
  const { head, rest, ended } = await peek(source, PEEKED_BYTES);
  const { label, warning } = charsetOf(head, { ...hints, whole: ended });
  const text = new TextDecoder(label).decode(head.subarray(0, 4 * 1024));
  const parse = hints.parse ?? detectFormat({ text, contentType: hints.contentType, url: hints.url });
  if (parse === undefined) {
    throw new UnreadableError(
      `The response of ${hints.url} has an unknown format (content-type: ${hints.contentType || 'none'}). Set \`source.parse\``,
    );
  }
  refuseOther(parse, text, hints);
  const all = chain(head, rest);
  return { parse, charset: label, warning, chunks: label === 'utf-8' ? all : toUtf8(all, label) };
}

/** Refuses HTML where another format is expected. Such a page is usually an error page, a login or a consent form. */
function refuseOther(parse: Parse, text: string, { url, contentType }: BodyHints): void {
  if (parse === 'html' || parse === 'xml' || !/^\s*<(?:!doctype|html|head|body)\b/i.test(text)) return;
  throw new UnreadableError(
    `${url} returned an HTML page instead of ${parse} (content-type: ${contentType || 'none'}): ${excerpt(text)}`,
  );
}

function excerpt(text: string): string {
  return JSON.stringify(text.trim().replace(/\s+/g, ' ').slice(0, 120));
}

interface Peeked {
  head: Buffer;
  rest: AsyncIterator<Uint8Array>;
  ended: boolean;
}

async function peek(stream: AsyncIterable<Uint8Array>, bytes: number): Promise<Peeked> {
  const rest = stream[Symbol.asyncIterator]();
  const head: Uint8Array[] = [];
  let length = 0;
  let ended = false;
  while (length < bytes && !ended) {
    const next = await rest.next();
    if (next.done === true) ended = true;
    else {
      head.push(next.value);
      length += next.value.length;
    }
  }
  return { head: Buffer.concat(head), rest, ended };
}

async function* chain(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/** Compressed files such as `contacts.csv.gz` have no content encoding, so they are recognized by their first bytes. */
function withoutCompression({ head, rest }: Peeked, contentEncoding: string): AsyncIterable<Uint8Array> {
  const encodings = contentEncoding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (encodings.length === 0 && head.length >= 4) {
    if (head[0] === 0x1f && head[1] === 0x8b) encodings.push('gzip');
    else if (head.readUInt32LE(0) === 0xfd2fb528) encodings.push('zstd');
  }
  if (encodings.length > MAX_ENCODINGS) {
    throw new UnreadableError(
      `The response has ${encodings.length} content encodings, but at most ${MAX_ENCODINGS} are supported`,
    );
  }
  let stream: AsyncIterable<Uint8Array> = chain(head, rest);
  for (const encoding of encodings.reverse()) {
    const malformed = (cause: Error) =>
      new UnreadableError(`The response cannot be decompressed (${encoding}): ${cause.message}`, { cause });
    stream = decompressed(stream, decoderOf(encoding, head), malformed);
  }
  return stream;
}

function decoderOf(encoding: string, head: Buffer): Transform {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      return createZstdDecompress();
    case 'deflate':
      // Some servers send deflate data without its zlib header.
      return (head[0] ?? 0) % 16 === 8 && head.length >= 2 && head.readUInt16BE(0) % 31 === 0
        ? createInflate()
        : createInflateRaw();
    default:
      throw new UnreadableError(
        `The response is compressed with ${encoding}, which is not supported. Supported: gzip, br, zstd and deflate`,
      );
  }
}

async function* toUtf8(chunks: AsyncIterable<Uint8Array>, label: string): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder(label);
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    if (text !== '') yield Buffer.from(text);
  }
  const last = decoder.decode();
  if (last !== '') yield Buffer.from(last);
}

/**
 * The character set for text that is not UTF-8 and does not declare a character set. Most browsers use the same
 * default.
 */
const FALLBACK = 'windows-1252';

interface Charset {
  /** The name of the character set for `TextDecoder`. */
  label: string;
  /** A warning for the log, set if the response claims to be UTF-8 but is not. */
  warning: string | undefined;
}

/** @param head the first bytes of the body, or all bytes if `hints.whole` is true */
function charsetOf(
  head: Uint8Array,
  hints: { charset: string | null; contentType: string; whole: boolean },
): Charset {
  if (hints.charset !== null) return { label: known(hints.charset) ?? FALLBACK, warning: undefined };
  const marked = byMark(head);
  if (marked !== undefined) return { label: marked, warning: undefined };
  const said = /charset\s*=\s*["']?([^"';,\s]+)/i.exec(hints.contentType)?.[1] ?? saidInText(head);
  const label = said === undefined ? undefined : known(said);
  if (label !== undefined && label !== 'utf-8') return { label, warning: undefined };
  if (head.indexOf(0) === -1 && isUtf8(upToCharacter(head, hints.whole)))
    return { label: 'utf-8', warning: undefined };
  const guessed = byZeros(head) ?? FALLBACK;
  return {
    label: guessed,
    warning:
      label === undefined
        ? undefined
        : `The response claims to be UTF-8 but is not, so it is read as ${guessed}. Set the character set with \`source.charset\``,
  };
}

/** Returns the name that `TextDecoder` uses for a character set. Undefined if the character set is unknown. */
export function known(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

function byMark(head: Uint8Array): string | undefined {
  const [a, b, c] = head;
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8';
  if (a === 0xff && b === 0xfe) return 'utf-16le';
  if (a === 0xfe && b === 0xff) return 'utf-16be';
  return undefined;
}

/** Detects UTF-16 by the first character: if it is an ASCII letter, one of its two bytes is zero. */
function byZeros(head: Uint8Array): string | undefined {
  if (head.length < 2) return undefined;
  if (head[0] === 0 && head[1] !== 0) return 'utf-16be';
  return head[0] !== 0 && head[1] === 0 ? 'utf-16le' : undefined;
}

/**
 * Returns the character set from `<meta charset=…>`, `<meta … content="text/html; charset=…">` or `<?xml …
 * encoding="…"?>`. Only markup is searched, because in JSON or CSV such a text would be a value.
 */
function saidInText(head: Uint8Array): string | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 2_048)).toString('latin1');
  if (!/^\s*</.test(text)) return undefined;
  const xml = /^\s*<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)["']/.exec(text);
  return (xml ?? /<meta\b[^>]*\bcharset\s*=\s*["']?([\w.:-]+)/i.exec(text))?.[1];
}

/** Cuts off an incomplete character at the end. */
function upToCharacter(head: Uint8Array, whole: boolean): Uint8Array {
  if (whole) return head;
  let end = head.length;
  for (let back = 1; back <= 4 && back <= head.length; back++) {
    const byte = head[head.length - back] as number;
    if (byte < 0x80) break;
    if (byte >= 0xc0) {
      end = head.length - back;
      break;
    }
  }
  return head.subarray(0, end);
}

const BY_TYPE: readonly [RegExp, Parse][] = [
  [/^application\/(?:x-)?(?:ndjson|jsonlines|jsonl|json-seq)$/, 'ndjson'],
  [/^(?:application|text)\/(?:[\w.+-]+\+)?json$/, 'json'],
  [
    /^text\/(?:csv|tab-separated-values|x-csv|comma-separated-values)$|^application\/(?:csv|vnd\.ms-excel)$/,
    'csv',
  ],
  [/^text\/html$|^application\/xhtml\+xml$/, 'html'],
  [/^(?:application|text)\/(?:[\w.+-]+\+)?xml$/, 'xml'],
];
const BY_NAME: readonly [RegExp, Parse][] = [
  [/\.(?:ndjson|jsonl)$/, 'ndjson'],
  [/\.(?:json|geojson)$/, 'json'],
  [/\.(?:csv|tsv|tab)$/, 'csv'],
  [/\.(?:xml|rss|atom)$/, 'xml'],
  [/\.x?html?$/, 'html'],
];

/** @param input.text the first characters of the body */
function detectFormat(input: { text: string; contentType: string; url: string }): Parse | undefined {
  const type = input.contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  const said = BY_TYPE.find(([form]) => form.test(type))?.[1];
  const name = new URL(input.url).pathname.toLowerCase().replace(/\.(?:gz|zst|br)$/, '');
  const named = BY_NAME.find(([form]) => form.test(name))?.[1];
  const looks = looksLike(input.text);
  // If the text contradicts the content type, the text wins, because servers often send text/html by default.
  if (looks !== undefined && (said === undefined || !compatible(said, looks))) {
    return named !== undefined && compatible(named, looks) ? named : looks;
  }
  return said ?? named ?? (/^[^\n]*[,;\t|][^\n]*\r?\n/.test(input.text) ? 'csv' : undefined);
}

function looksLike(text: string): Parse | undefined {
  const start = text.replace(/^\ufeff/, '').trimStart();
  if (/^(?:<!doctype html|<html\b)/i.test(start)) return 'html';
  if (/^<\?xml\b/.test(start)) return 'xml';
  if (/^</.test(start)) return 'html';
  if (/^\{[^\n]*\}\r?\n\s*\{/.test(start)) return 'ndjson';
  return /^[[{]/.test(start) ? 'json' : undefined;
}

function compatible(said: Parse, looks: Parse): boolean {
  if (said === looks) return true;
  // A single JSON object is also valid NDJSON. XHTML starts like XML. CSV may start with anything except HTML.
  if (said === 'ndjson' || said === 'json')
    return looks === 'json' || (looks === 'ndjson' && said === 'ndjson');
  if (said === 'html' || said === 'xml') return looks === 'html' || looks === 'xml';
  return looks !== 'html';
}
