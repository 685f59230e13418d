/**
 * Finds the path of the table that a request target names.
 *
 * A matcher of our own stands in front of the framework's router, because the contract is exact where routers
 * differ: paths before methods (so that 405 knows its Allow), one percent-decoding, no limit on the length of
 * an id, one trailing slash forgiven and a double slash not.
 */
import type { Route } from './route.ts';

/** A path of the table with everything that it takes. */
export interface KnownPath {
  /** As clients write it: `/v1/workflows/{workflowId}/data`. */
  path: string;
  /** By method, HEAD included wherever GET is. */
  routes: ReadonlyMap<string, Route>;
  /** The exact value of the `allow` header. */
  allow: string;
}

export interface Match {
  known: KnownPath;
  /** Decoded once; undefined where the percent-encoding is broken. */
  params: Record<string, string | undefined>;
}

/** A request target in its two parts, both as they came. */
export interface Target {
  path: string;
  query: string;
}

/** Splits a request target; `http://host/path` (RFC 9112, section 3.2.2) is taken as `/path`. */
export function splitTarget(target: string): Target {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  return mark === -1
    ? { path: local, query: '' }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

/**
 * Compiles the table. The function it returns answers the path that matches, or nothing; where two match, the
 * one with fewer parameters wins.
 */
export function createMatcher(routes: readonly Route[]): (path: string) => Match | undefined {
  const byLength = new Map<number, Pattern[]>();
  for (const path of new Set(routes.map((route) => route.path))) {
    const pattern = compile(
      path,
      routes.filter((route) => route.path === path),
    );
    const siblings = byLength.get(pattern.segments.length) ?? [];
    byLength.set(pattern.segments.length, [...siblings, pattern].sort(fewerParametersFirst));
  }
  return (path) => {
    const segments = split(path);
    if (segments === undefined) return undefined;
    for (const pattern of byLength.get(segments.length) ?? []) {
      const params = apply(pattern, segments);
      if (params !== undefined) return { known: pattern.known, params };
    }
    return undefined;
  };
}

/** The path of the table without the forms of its parameters, as OpenAPI writes it. */
export function plainPath(path: string): string {
  return path.replace(/\{(\w+)=[^}]*\}/g, '{$1}');
}

interface Pattern {
  known: KnownPath;
  segments: readonly Segment[];
}

/** A literal, or a parameter whose value has to start with `prefix`: `{webhookId=wh_*}`. */
type Segment = { literal: string } | { name: string; prefix: string };

function compile(path: string, routes: readonly Route[]): Pattern {
  const methods = new Map<string, Route>();
  for (const route of routes) {
    methods.set(route.method, route);
    if (route.method === 'GET') methods.set('HEAD', route);
  }
  const segments = path
    .slice(1)
    .split('/')
    .map((text): Segment => {
      const parameter = /^\{(\w+)(?:=(\w*)\*)?\}$/.exec(text);
      if (parameter === null) return { literal: text };
      return { name: parameter[1] ?? '', prefix: parameter[2] ?? '' };
    });
  const allow = [...new Set([...methods.keys(), 'OPTIONS'])].join(', ');
  return { known: { path: plainPath(path), routes: methods, allow }, segments };
}

function fewerParametersFirst(one: Pattern, other: Pattern): number {
  const parameters = (pattern: Pattern) => pattern.segments.filter((segment) => 'name' in segment).length;
  return parameters(one) - parameters(other);
}

/** The segments of a path, undecoded; nothing when one of them is empty. One trailing slash is left out. */
function split(path: string): string[] | undefined {
  if (!path.startsWith('/')) return undefined;
  const segments = path.slice(1, path.endsWith('/') ? -1 : undefined).split('/');
  return segments.includes('') ? undefined : segments;
}

function apply({ segments: expected }: Pattern, segments: readonly string[]): Match['params'] | undefined {
  // Of some twenty patterns all but one end here: nothing is made for them.
  for (let at = 0; at < expected.length; at++) {
    const one = expected[at] as Segment;
    if ('literal' in one && decode(segments[at] ?? '') !== one.literal) return undefined;
  }
  const params: Match['params'] = {};
  for (const [at, one] of expected.entries()) {
    if ('literal' in one) continue;
    const value = decode(segments[at] ?? '');
    if (one.prefix !== '' && value?.startsWith(one.prefix) !== true) return undefined;
    params[one.name] = value;
  }
  return params;
}

function decode(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
