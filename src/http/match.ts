/**
 * Matches request targets with the paths of the table.
 *
 * This stands in front of the framework's router because the contract is exact where routers differ: paths match before
 * methods (so that a 405 can name its `allow`), percent-encoding is decoded once, ids may have any length, and one
 * trailing slash is accepted while a double slash is not.
 */
import type { Route } from './route.ts';

/** A path of the table with its methods. */
export interface KnownPath {
  /** As clients write it: `/v1/workflows/{workflowId}/data`. */
  path: string;
  /** By method; HEAD wherever there is GET. */
  routes: ReadonlyMap<string, Route>;
  /** The exact value of the `allow` header. */
  allow: string;
}

export interface Match {
  known: KnownPath;
  /** Percent-decoded once; undefined where the encoding is invalid. */
  params: Record<string, string | undefined>;
}

/** The two parts of a request target, not decoded. */
export interface Target {
  path: string;
  query: string;
  /** It is `*`, or as `OPTIONS http://host` says the same to a proxy (RFC 9112, section 3.2.4). */
  isServer?: boolean;
}

/** Splits a request target; `http://host/path` (RFC 9112, section 3.2.2) is taken as `/path`. */
export function splitTarget(target: string): Target {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]+/i, '');
  if (target === '*') return { path: target, query: '', isServer: true };
  if (local === '') return { path: '/', query: '', isServer: true };
  const mark = local.indexOf('?');
  if (mark === -1) return { path: local, query: '' };
  return { path: local.slice(0, mark) || '/', query: local.slice(mark + 1) };
}

/**
 * Compiles the table into a function that finds the path that matches. Where two match, the one with fewer parameters
 * wins.
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

/** A path of the table as OpenAPI writes it: without the patterns of its parameters. */
export function plainPath(path: string): string {
  return path.replace(/\{(\w+)=[^}]*\}/g, '{$1}');
}

interface Pattern {
  known: KnownPath;
  segments: readonly Segment[];
}

/** A literal, or a parameter whose value must start with `prefix`: `{webhookId=wh_*}`. */
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

/** The segments of a path, not decoded; undefined when one is empty. One trailing slash is dropped. */
function split(path: string): string[] | undefined {
  if (!path.startsWith('/')) return undefined;
  const segments = path.slice(1, path.endsWith('/') ? -1 : undefined).split('/');
  return segments.includes('') ? undefined : segments;
}

function apply({ segments: expected }: Pattern, segments: readonly string[]): Match['params'] | undefined {
  // All patterns but one end here, so nothing is allocated before.
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
