/**
 * Matches request targets with the paths of the table.
 *
 * The contract is precise where routers differ: paths are matched before methods (so that a 405 has an `allow` header),
 * percent-encoding is decoded once and may be invalid, ids may have any length, and one trailing slash is accepted, but
 * not a double slash.
 */
import type { Route } from '../route.ts';

/** A path of the table, and its methods. */
export interface KnownPath {
  /** For example `/v1/workflows/{workflowId}/data`. */
  path: string;
  /** By method. A path with GET also has HEAD. */
  routes: ReadonlyMap<string, Route>;
  /** The value of the `allow` header. */
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
  /** The target is `*`, or its form for proxies, `OPTIONS http://host` (RFC 9112, section 3.2.4). */
  isServer?: boolean;
}

/** Splits a request target; `http://host/path` (RFC 9112, section 3.2.2) is treated as `/path`. */
export function splitTarget(target: string): Target {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]+/i, '');
  if (target === '*') return { path: target, query: '', isServer: true };
  if (local === '') return { path: '/', query: '', isServer: true };
  const mark = local.indexOf('?');
  if (mark === -1) return { path: local, query: '' };
  return { path: local.slice(0, mark) || '/', query: local.slice(mark + 1) };
}

/** One segment of a path, and the segments that may follow. Literals are tried before parameters. */
interface Node {
  known?: KnownPath;
  literals: Map<string, Node>;
  /** The value must start with `prefix`: `{webhookId=wh_*}`. */
  parameters: { name: string; prefix: string; node: Node }[];
}

/**
 * Compiles the table into a function that finds the matching path. A path that ends in `/*` matches everything below it,
 * except below literals that other paths have there. The rest of the target is the parameter `path`, not decoded.
 */
export function createMatcher(routes: readonly Route[]): (path: string) => Match | undefined {
  const root: Node = { literals: new Map(), parameters: [] };
  const wildcards: { prefix: string; known: KnownPath; node: Node }[] = [];
  /** Paths without parameters, which no other path of the table precedes. */
  const literal = new Map<string, KnownPath>();
  for (const [path, ofPath] of Map.groupBy(routes, (route) => route.path)) {
    const prefix = path.replace(/\/\*$/, '');
    const node = nodeOf(root, segmentsOf(prefix) ?? []);
    const known = knownPath(path, ofPath);
    if (prefix !== path) {
      wildcards.push({ prefix, known, node });
      continue;
    }
    node.known = known;
    if (!path.includes('{')) literal.set(path, known);
  }
  return (path) => {
    const same = literal.get(path);
    if (same !== undefined) return { known: same, params: {} };
    const segments = segmentsOf(path);
    const found = segments && walk(root, segments, 0);
    if (found !== undefined) return found;
    for (const { prefix, known, node } of wildcards) {
      if (path === prefix) return { known, params: {} };
      if (!path.startsWith(`${prefix}/`)) continue;
      const below = path.slice(prefix.length + 1);
      return node.literals.has(below.split('/', 1)[0] ?? '') ? undefined : { known, params: { path: below } };
    }
    return undefined;
  };
}

/** A path of the table in the syntax of OpenAPI: without patterns for its parameters. */
export function plainPath(path: string): string {
  return path.replace(/\{(\w+)=[^}]*\}/g, '{$1}');
}

function knownPath(path: string, ofPath: readonly Route[]): KnownPath {
  const routes = new Map<string, Route>();
  for (const route of ofPath) {
    routes.set(route.method, route);
    if (route.method === 'GET') routes.set('HEAD', route);
  }
  const allow = [...new Set([...routes.keys(), 'OPTIONS'])].join(', ');
  return { path: plainPath(path), routes, allow };
}

/** The node of a path of the table, created if missing. */
function nodeOf(root: Node, segments: readonly string[]): Node {
  let node = root;
  for (const segment of segments) {
    const [, name, prefix = ''] = /^\{(\w+)(?:=(\w*)\*)?\}$/.exec(segment) ?? [];
    const below =
      name === undefined
        ? node.literals.get(segment)
        : node.parameters.find((one) => one.name === name && one.prefix === prefix)?.node;
    const next: Node = below ?? { literals: new Map(), parameters: [] };
    if (below === undefined && name === undefined) node.literals.set(segment, next);
    if (below === undefined && name !== undefined) node.parameters.push({ name, prefix, node: next });
    node = next;
  }
  return node;
}

function walk(node: Node, segments: readonly string[], at: number): Match | undefined {
  if (at === segments.length) return node.known && { known: node.known, params: {} };
  const value = decode(segments[at] ?? '');
  const literal = value === undefined ? undefined : node.literals.get(value);
  const found = literal && walk(literal, segments, at + 1);
  if (found !== undefined) return found;
  for (const { name, prefix, node: below } of node.parameters) {
    if (prefix !== '' && value?.startsWith(prefix) !== true) continue;
    const match = walk(below, segments, at + 1);
    if (match === undefined) continue;
    match.params[name] = value;
    return match;
  }
  return undefined;
}

/** The segments of a path, not decoded; undefined when one is empty. One trailing slash is dropped. */
function segmentsOf(path: string): string[] | undefined {
  if (path === '/') return [];
  if (!path.startsWith('/')) return undefined;
  const segments = path.slice(1, path.endsWith('/') ? -1 : undefined).split('/');
  return segments.includes('') ? undefined : segments;
}

function decode(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
