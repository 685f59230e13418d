/**
 * The state that an HTTP source keeps between runs: cache validators, and the values that `source.state` takes from
 * records.
 */
import { createHash } from 'node:crypto';
import type { HttpSource, Remember } from '../../model/http-source.ts';
import { compileText, textOfValue } from './fields.ts';
import type { Grammar } from './paths.ts';

/** The cache validators of one response (RFC 9110, section 8.8). */
interface Validators {
  etag?: string;
  lastModified?: string;
}

const EXAMPLE = 60;

/** The state that is stored after a run. */
interface KeptState {
  values?: Record<string, string>;
  /**
   * The cache validators, by the SHA-256 hash of the URL. `of` is the hash of the definition with which they were
   * received.
   */
  answers?: { of: string; validators: Record<string, Validators> };
}

export function readState(state: unknown): KeptState {
  return typeof state === 'object' && state !== null ? (state as KeptState) : {};
}

export interface StateTracker {
  /**
   * The values for the placeholders in requests. A value comes from the last run, or from `initial` in the definition.
   */
  values: ReadonlyMap<string, string>;
  /** Updates the values from one record. Undefined if the definition takes no value from records. */
  look: ((part: unknown, grammar: Grammar) => void) | undefined;
  /** Returns log lines about values that were ignored. */
  sentences(): string[];
  /** The values for the next run. */
  next(): Record<string, string>;
}

/** @param startedAt ISO 8601 */
export function trackState(
  definitions: Readonly<Record<string, Remember>>,
  kept: KeptState,
  startedAt: string,
): StateTracker {
  const values = new Map<string, string>();
  for (const [name, { initial }] of Object.entries(definitions)) {
    const value = kept.values?.[name] ?? initial;
    if (typeof value === 'string') values.set(name, value.toWellFormed());
  }
  const next = new Map(values);
  const fresh = new Set<string>();
  const strange = new Map<string, { count: number; example: string }>();
  const takers = Object.entries(definitions).flatMap(([name, one]) =>
    one.take === 'start' ? [] : [{ name, ...one }],
  );
  const finders = new Map<Grammar, ((part: unknown) => unknown)[]>();

  function look(part: unknown, grammar: Grammar): void {
    let finds = finders.get(grammar);
    if (finds === undefined) {
      finds = takers.map(({ from }) => {
        const { find } = compileText(from, grammar, { trim: true });
        return (of: unknown) => find(of)[0];
      });
      finders.set(grammar, finds);
    }
    for (const [at, { name, take, initial }] of takers.entries()) {
      // `toWellFormed` replaces lone surrogates, because a lone surrogate would make every request with this value
      // fail.
      const text = textOfValue(finds[at]?.(part)).toWellFormed();
      if (text === '') continue;
      const before = next.get(name);
      const ordered = take === 'max' || take === 'min';
      const differs = ordered && before !== undefined && kindOf(before) !== kindOf(text);
      if (differs && before !== initial) {
        const { count, example } = strange.get(name) ?? { count: 0, example: text };
        strange.set(name, { count: count + 1, example });
        continue;
      }
      const replaces =
        before === undefined ||
        // A value may replace an `initial` value of another type, such as 0 for a time.
        differs ||
        take === 'last' ||
        (take === 'first'
          ? !fresh.has(name)
          : take === 'max'
            ? compare(text, before) > 0
            : !fresh.has(name) || compare(text, before) < 0);
      fresh.add(name);
      if (replaces) next.set(name, text);
    }
  }

  return {
    values,
    look: takers.length === 0 ? undefined : look,
    sentences: () =>
      [...strange].map(
        ([name, { count, example }]) =>
          `The state \`${name}\` ignored ${count} values, such as ${JSON.stringify(example.slice(0, EXAMPLE))}, because their type differs from that of the stored value`,
      ),
    next() {
      for (const [name, { take }] of Object.entries(definitions))
        if (take === 'start') next.set(name, startedAt);
      return Object.fromEntries(next);
    },
  };
}

/** Compares two numbers as numbers, and two times with time zones as times. Any other values are compared as text. */
function compare(a: string, b: string): number {
  if (NUMBER.test(a) && NUMBER.test(b))
    return a.length < 16 && b.length < 16
      ? Number(a) - Number(b)
      : Number(BigInt(a.split('.')[0] as string) - BigInt(b.split('.')[0] as string));
  if (TIME.test(a) && TIME.test(b)) return Date.parse(a) - Date.parse(b);
  return a < b ? -1 : a > b ? 1 : 0;
}

const NUMBER = /^-?\d+(?:\.\d+)?$/;
const DAY = /^\d{4}-\d\d-\d\d/;
const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*(?:Z|[+-]\d\d:?\d\d)$/;

function kindOf(text: string): 'number' | 'time' | 'text' {
  return NUMBER.test(text) ? 'number' : DAY.test(text) ? 'time' : 'text';
}

/**
 * Size limits of the stored cache validators. If the validators of a response do not fit, the next run requests it
 * without conditions.
 */
const MAX_KEPT_BYTES = 256 * 1024;
const MAX_VALIDATORS_BYTES = 1_024;

export interface ConditionalRequests {
  /** Returns the headers `If-None-Match` and `If-Modified-Since`, as far as validators for the URL are known. */
  conditions(url: string): Record<string, string>;
  /** Stores the validators of a response. */
  read(url: string, headers: Readonly<Record<string, string>>): void;
  /** Keeps the known validators for the next run, after the URL has returned 304. */
  unchanged(url: string): void;
  /** Makes the next request for this URL unconditional. */
  forget(url: string): void;
  /** The validators for the next run. */
  next(): KeptState['answers'];
}

/**
 * Makes conditional requests, but only if each start URL is a single response, because an unchanged first page does not
 * mean that the following pages are unchanged.
 *
 * @param definitionHash the hash of the current definition; validators of another definition are ignored
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

/** Returns the key of a URL: a hash, because a URL may contain a secret, and users can read the stored state. */
function keyOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
