/** Which answers have not changed since the last run: what is asked with, and what is kept for the next one. */
import type { HttpSource } from '../../../model/http-source.ts';
import type { KeptState, Validators } from './remembered.ts';

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
  return {
    conditions(url) {
      const { etag, lastModified } = known.get(url) ?? {};
      return {
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
        ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
      };
    },
    read(url, { etag, 'last-modified': lastModified }) {
      if (!applies || (etag === undefined && lastModified === undefined)) return;
      left.set(url, {
        ...(etag === undefined ? {} : { etag }),
        ...(lastModified === undefined ? {} : { lastModified }),
      });
    },
    unchanged(url) {
      const before = known.get(url);
      if (before !== undefined) left.set(url, before);
    },
    forget: (url) => void known.delete(url),
    left: () => (left.size === 0 ? undefined : { of: definitionHash, validators: Object.fromEntries(left) }),
  };
}
