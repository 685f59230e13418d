/** Conditional requests: sends the validators that the last run kept, and collects those for the next one. */
import { createHash } from 'node:crypto';
import type { HttpSource } from '../../model/http-source.ts';
import type { KeptState, Validators } from './kept-state.ts';

/** Bounds of the kept state; a response whose validators do not fit is read in full next time. */
const MAX_KEPT_BYTES = 256 * 1024;
const MAX_VALIDATORS_BYTES = 1_024;

export interface ConditionalRequests {
  /** `If-None-Match` and `If-Modified-Since`, where validators are known. */
  conditions(url: string): Record<string, string>;
  /** A response was read. */
  read(url: string, headers: Readonly<Record<string, string>>): void;
  /** The server answered 304. */
  unchanged(url: string): void;
  /** Makes the next request for this URL unconditional. */
  forget(url: string): void;
  /** The validators for the next run. */
  next(): KeptState['answers'];
}

/**
 * Used only where each start URL is a single response: an unchanged first page says nothing about the pages after it.
 *
 * @param definitionHash validators that belong to another definition are ignored
 */
export function createConditionalRequests(
  source: HttpSource,
  kept: KeptState,
  definitionHash: string,
): ConditionalRequests {
  const applies = source.paginate === null && source.follow === null && source.method === 'GET';
  const known = new Map(
    Object.entries(applies && kept.answers?.of === definitionHash ? (kept.answers.validators ?? {}) : {}),
  );
  const next = new Map<string, Validators>();
  let bytes = 0;

  function keep(url: string, validators: Validators): void {
    const size = Buffer.byteLength(JSON.stringify(validators));
    const key = keyOf(url);
    if (next.has(key) || size > MAX_VALIDATORS_BYTES || bytes + size + key.length > MAX_KEPT_BYTES) return;
    bytes += size + key.length;
    next.set(key, validators);
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
      next.delete(keyOf(url));
    },
    next: () => (next.size === 0 ? undefined : { of: definitionHash, validators: Object.fromEntries(next) }),
  };
}

/** A hash, because a URL may hold a secret and the kept state can be read. */
function keyOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
