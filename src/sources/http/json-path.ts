/** Paths into JSON: JSONPath (RFC 9535), or the plain name of a property. */
import { createRequire } from 'node:module';
import { MalformedError } from '../../std/lines.ts';

/** Returns everything in a value that a path matches, in order. */
type Finder = (value: unknown) => unknown[];

const STEP =
  /\.([A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*)|\[(?:'([^'\\]*)'|"([^"\\]*)"|(\d{1,9}))\]/uy;

/**
 * The names and positions of a path that matches one place at most, such as `$.data['e-mail'][0]`; undefined for any
 * other. A text that does not begin with `$` is the name of a property.
 */
export function plainSteps(path: string): (string | number)[] | undefined {
  if (!path.startsWith('$')) return [path];
  const steps: (string | number)[] = [];
  STEP.lastIndex = 1;
  while (STEP.lastIndex < path.length) {
    const found = STEP.exec(path);
    if (found === null) return undefined;
    const [, name, single, double, position] = found;
    steps.push(position === undefined ? (name ?? single ?? double ?? '') : Number(position));
  }
  return steps;
}

/** @throws Error that says what is wrong with the path */
export function compileJsonPath(path: string): Finder {
  const steps = plainSteps(path);
  if (steps !== undefined) {
    return (value) => {
      const found = walk(value, steps);
      return found === undefined ? [] : [found];
    };
  }
  // Loaded when a path needs it; most match one place only.
  const { jsonpath } = createRequire(import.meta.url)('json-p3') as typeof import('json-p3');
  let query: ReturnType<typeof jsonpath.compile>;
  try {
    query = jsonpath.compile(path);
  } catch (error) {
    throw new Error(`${path} is not a JSONPath: ${(error as Error).message}`, { cause: error });
  }
  return (value) => {
    try {
      return query.query(value as Parameters<typeof query.query>[0]).values();
    } catch (error) {
      // The value may be nested more deeply than the library supports.
      throw new MalformedError(`${path} cannot be followed: ${(error as Error).message}`);
    }
  };
}

function walk(from: unknown, steps: readonly (string | number)[]): unknown {
  let value = from;
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof step === 'number')) {
      return undefined;
    }
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}
