/** Decodes the body of a response to UTF-8: undoes its compression and converts its character set. */
import type { Readable, Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import type { Parse } from '../../model/http-source.ts';
import { charsetOf } from './charset.ts';
import { detectFormat } from './detect-format.ts';
import { UnreadableError } from './source-error.ts';

/** Bytes to look at before the format and the character set are decided. */
const PEEKED_BYTES = 64 * 1024;
/** Servers use one, rarely two. Each takes a decoder with its own memory. */
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
  /** The label of its original character set. */
  charset: string;
  /** Says so when the response names another character set. */
  warning: string | undefined;
  /** UTF-8; without a byte order mark if it was converted. */
  chunks: AsyncIterable<Uint8Array>;
}

/** @throws UnreadableError; the errors of the stream */
export async function openBody(raw: Readable, hints: BodyHints): Promise<Body> {
  const source = withoutCompression(await peek(raw, 4), hints.contentEncoding);
  const { head, rest, ended } = await peek(source, PEEKED_BYTES);
  const { label, warning } = charsetOf(head, { ...hints, whole: ended });
  const text = new TextDecoder(label).decode(head.subarray(0, 4 * 1024));
  const parse = hints.parse ?? detectFormat({ text, contentType: hints.contentType, url: hints.url });
  if (parse === undefined) {
    throw new UnreadableError(
      `What ${hints.url} answers is of an unknown kind (content-type: ${hints.contentType || 'none'}). Say it with \`source.parse\``,
    );
  }
  refuseOther(parse, text, hints);
  const all = chain(head, rest);
  return { parse, charset: label, warning, chunks: label === 'utf-8' ? all : toUtf8(all, label) };
}

/** HTML where data was expected is an error page, a login or a consent form. */
function refuseOther(parse: Parse, text: string, { url, contentType }: BodyHints): void {
  if (parse === 'html' || parse === 'xml' || !/^\s*<(?:!doctype|html|head|body)\b/i.test(text)) return;
  throw new UnreadableError(
    `${url} answered a page of HTML where ${parse} was expected (content-type: ${contentType || 'none'}): ${excerpt(text)}`,
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

/** Compressed files (`contacts.csv.gz`) have no content encoding, and are recognised by their first bytes. */
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
      `The answer is compressed ${encodings.length} times over; more than ${MAX_ENCODINGS} are not undone`,
    );
  }
  let stream: AsyncIterable<Uint8Array> = chain(head, rest);
  for (const encoding of encodings.reverse())
    stream = decompressed(stream, decoderOf(encoding, head), encoding);
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
      // Some servers leave out the zlib header.
      return (head[0] ?? 0) % 16 === 8 && head.length >= 2 && head.readUInt16BE(0) % 31 === 0
        ? createInflate()
        : createInflateRaw();
    default:
      throw new UnreadableError(
        `The answer is compressed with ${encoding}, which is not known here: gzip, br, zstd and deflate are`,
      );
  }
}

async function* decompressed(
  input: AsyncIterable<Uint8Array>,
  decoder: Transform,
  encoding: string,
): AsyncGenerator<Uint8Array> {
  let failure: unknown;
  const feeding = (async () => {
    try {
      for await (const chunk of input) {
        if (decoder.destroyed) return;
        if (!decoder.write(chunk))
          await new Promise<void>((resolve) => {
            const go = () => {
              decoder.off('drain', go);
              decoder.off('close', go);
              resolve();
            };
            decoder.once('drain', go);
            decoder.once('close', go);
          });
      }
      decoder.end();
    } catch (error) {
      failure = error;
      decoder.destroy(error as Error);
    }
  })();
  try {
    for await (const chunk of decoder) yield chunk as Uint8Array;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new UnreadableError(
      `The answer cannot be decompressed (${encoding}): ${(error as Error).message}`,
      { cause: error },
    );
  } finally {
    decoder.destroy();
    await feeding;
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
