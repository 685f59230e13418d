/** Which answers have not changed since the last run: what is asked with, and what is kept for the next one. */
import { createHash } from 'node:crypto';
import type { HttpSource } from '../../../model/http-source.ts';
import type { KeptState, Validators } from './remembered.ts';

/** The state of a run is small; an answer for which there is no room is read again. */
const MAX_KEPT_BYTES = 256 * 1024;
const MAX_VALIDATORS_BYTES = 1_024;

export interface Freshness {
  /** The headers by which a server can answer that nothing has changed. */
  conditions(url: string): Record<string, string>;
  /** An answer was read, or it was said that it has not changed. */
  read(url: string, headers: Readonly<Record<string, string>>): void;
  unchanged(url: string): void;
  /** From now on it is asked for whatever has changed. */
  forget(url: string): void;
  /** For the next run. */
  left(): KeptState['answers'];
}

/**
 * Only where records come from one answer for each URL: that a first page has not changed says nothing of the others.
 *
 * @param definitionHash what was unchanged for another definition is read again
 */
export function createFreshness(source: HttpSource, kept: KeptState, definitionHash: string): Freshness {
  const applies = source.paginate === null && source.follow === null && source.method === 'GET';
  const known = new Map(
    Object.entries(applies && kept.answers?.of === definitionHash ? (kept.answers.validators ?? {}) : {}),
  );
  const left = new Map<string, Validators>();
  let bytes = 0;

  function keep(url: string, validators: Validators): void {
    const size = Buffer.byteLength(JSON.stringify(validators));
    const key = keyOf(url);
    if (left.has(key) || size > MAX_VALIDATORS_BYTES || bytes + size + key.length > MAX_KEPT_BYTES) return;
    bytes += size + key.length;
    left.set(key, validators);
  }

  return {
    conditions(url) {
      const { etag, lastModified } = known.get(keyOf(url)) ?? {};
      return {
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
        ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
      };
    },
    read(url, { etag, 'last-modified': lastModified }) {
      if (!applies || (etag === undefined && lastModified === undefined)) return;
      keep(url, {
        ...(etag === undefined ? {} : { etag }),
        ...(lastModified === undefined ? {} : { lastModified }),
      });
    },
    unchanged(url) {
      const before = known.get(keyOf(url));
      if (before !== undefined) keep(url, before);
    },
    forget(url) {
      known.delete(keyOf(url));
      left.delete(keyOf(url));
    },
    left: () => (left.size === 0 ? undefined : { of: definitionHash, validators: Object.fromEntries(left) }),
  };
}

/** An address may hold a secret, and what is kept between runs can be read. */
function keyOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
