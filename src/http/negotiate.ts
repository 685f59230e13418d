/** Content negotiation: a format by `Accept`, an encoding by `Accept-Encoding`. */
import type { Encoding } from '../records/encodings.ts';

/**
 * The preferred one of `formats`; JSON when it is accepted, by name or by a wildcard, or when none of them is named.
 */
export function acceptedFormat<F extends string>(
  accept: string | undefined,
  formats: readonly F[],
): F | 'json' {
  const wanted = preferences(accept).filter(({ q }) => q > 0);
  if (wanted.some(({ name }) => JSON_NAMES.has(name))) return 'json';
  const named = wanted.flatMap(({ name, q }) => {
    const format = formats.find((one) => one === FORMAT_NAMES[name]);
    return format === undefined ? [] : [{ format, q }];
  });
  return first(named)?.format ?? 'json';
}

/** The preferred encoding; between equals zstd, then gzip. Without a preference: `identity`. */
export function acceptedEncoding(acceptEncoding: string | undefined): Encoding {
  return acceptedOf(acceptEncoding, ENCODINGS) ?? 'identity';
}

/** The preferred one of `encodings`, if the client names any; between equals the first. */
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

const JSON_NAMES: ReadonlySet<string> = new Set(['application/json', 'application/*', '*/*']);
const FORMAT_NAMES: Readonly<Record<string, string>> = {
  'text/csv': 'csv',
  'text/plain': 'text',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'application/x-jsonlines': 'ndjson',
};
const ENCODINGS = ['zstd', 'gzip', 'identity'] as const;

/** Further ones are ignored. */
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

function first<T extends { q: number }>(preferences: readonly T[]): T | undefined {
  return preferences.toSorted((one, other) => other.q - one.q)[0];
}
