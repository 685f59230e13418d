/** Content negotiation by `Accept` and `Accept-Encoding`, and compression of texts. */
import { compress, type Encoding } from '../records/formats.ts';
import type { Reply, Request } from './server/exchange.ts';

/**
 * The format in `formats` that `Accept` lists with a higher q-value than JSON and every wildcard that matches JSON.
 * Otherwise JSON, even if the client refuses JSON and lists no other format (RFC 9110, section 12.5.1).
 */
export function acceptedFormat<F extends string>(
  accept: string | undefined,
  formats: readonly F[],
): F | 'json' {
  if (accept === undefined || accept === '*/*') return 'json';
  const wanted = preferences(accept);
  const isRefused = wanted.some(({ name, q }) => name === JSON_TYPE && q === 0);
  const forJson = wanted.filter(({ name }) => name === JSON_TYPE || JSON_WILDCARDS.has(name));
  const bar = isRefused ? 0 : Math.max(0, ...forJson.map(({ q }) => q));
  const named = wanted.flatMap(({ name, q }) => {
    const format = formats.find((one) => one === FORMAT_NAMES[name]);
    return format === undefined || q <= bar ? [] : [{ format, q }];
  });
  return first(named)?.format ?? 'json';
}

/** The preferred encoding; zstd wins a tie, then gzip. Without a preference: `identity`. */
export function acceptedEncoding(acceptEncoding: string | undefined): Encoding {
  if (acceptEncoding === undefined) return 'identity';
  const known = chosen.get(acceptEncoding);
  if (known !== undefined) return known;
  const encoding = acceptedOf(acceptEncoding, ENCODINGS) ?? 'identity';
  if (acceptEncoding.length > MAX_KNOWN_LENGTH) return encoding;
  if (chosen.size >= MAX_KNOWN) chosen.clear();
  chosen.set(acceptEncoding, encoding);
  return encoding;
}

/** The encodings of recent headers, because a client always sends the same header, and parsing it takes 2 µs. */
const chosen = new Map<string, Encoding>();
const MAX_KNOWN = 100;
const MAX_KNOWN_LENGTH = 200;

/** The preferred encoding in `encodings`, if `Accept-Encoding` lists any; the first one wins a tie. */
export function acceptedOf<E extends string>(
  acceptEncoding: string | undefined,
  encodings: readonly E[],
): E | undefined {
  const wanted = preferences(acceptEncoding);
  const named = encodings.flatMap((encoding) => {
    const q = wanted.find(({ name }) => name.replace(/^x-/, '') === encoding)?.q ?? 0;
    return q > 0 ? [{ encoding, q }] : [];
  });
  return first(named)?.encoding;
}

const JSON_TYPE = 'application/json';
const JSON_WILDCARDS: ReadonlySet<string> = new Set(['application/*', '*/*']);
/** Media types of NDJSON, in `Accept` and in `Content-Type`. */
export const NDJSON_TYPES = [
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
  'application/x-jsonl',
  'application/jsonlines',
  'application/x-jsonlines',
] as const;
const FORMAT_NAMES: Readonly<Record<string, string>> = {
  'text/csv': 'csv',
  'text/plain': 'text',
  ...Object.fromEntries(NDJSON_TYPES.map((name) => [name, 'ndjson'])),
};
const ENCODINGS = ['zstd', 'gzip', 'identity'] as const;

/** Only this many comma-separated items of an `Accept` or `Accept-Encoding` header are read. */
const MAX_PREFERENCES = 100;

function preferences(header: string | undefined): { name: string; q: number }[] {
  return (header ?? '')
    .split(',', MAX_PREFERENCES)
    .map((part) => {
      const [name = '', ...parameters] = part.split(';');
      const weight = parameters.map((one) => /^\s*q=([\d.]+)\s*$/i.exec(one)?.[1]).find(Boolean);
      return { name: name.trim().toLowerCase(), q: weight === undefined ? 1 : Number(weight) };
    })
    .filter(({ name, q }) => name !== '' && q <= 1);
}

/** The `q` of a media type in `Accept`; 0 if it is not listed. */
export function weightOf(accept: string, type: string): number {
  return preferences(accept).find(({ name }) => name === type)?.q ?? 0;
}

function first<T extends { q: number }>(preferences: readonly T[]): T | undefined {
  return preferences.toSorted((one, other) => other.q - one.q)[0];
}

/** A response shorter than this is not compressed, because that would not save a network packet. */
const LEAST_BYTES = 1_024;
const TEXTS = /^(?:text\/(?!event-stream)|application\/(?:json|yaml|problem\+json))/;

/**
 * Chooses an encoding for a text and sets the response headers for it.
 *
 * @param bytes the length of the text
 */
export function chooseEncoding(request: Request, reply: Reply, bytes: number): Encoding {
  if (bytes < LEAST_BYTES) return 'identity';
  reply.vary('accept-encoding');
  const encoding = acceptedEncoding(request.headers['accept-encoding']);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return encoding;
}

/**
 * Compresses a text if that helps. A reply with an `ETag` is skipped, because its operation has already encoded the
 * text.
 */
export function compressed(request: Request, reply: Reply, text: string): string | Promise<Uint8Array> {
  if (Buffer.byteLength(text) < LEAST_BYTES || reply.hasHeader('etag') || reply.hasHeader('content-encoding'))
    return text;
  if (!TEXTS.test(String(reply.getHeader('content-type')))) return text;
  const encoding = chooseEncoding(request, reply, Buffer.byteLength(text));
  return encoding === 'identity' ? text : compress(Buffer.from(text), encoding);
}
