/** Error messages for the authors of modules. */
import { inspect } from 'node:util';

/** The error of a module whose default export is not a function. */
export function notAFunction(found: unknown): string {
  return found === undefined
    ? 'The module has no default export. It must export the function that yields records: export default async function* (ctx) { … }'
    : `The default export must be a function that yields records, found ${nameOf(found)}`;
}

/** The text of an error with its causes, without stack frames of Node and of our own programs. */
export function usefulPart(error: unknown): string {
  return inspect(error, { depth: 4 })
    .split('\n')
    .filter((line) => !/^\s+at .*(?:node:|module-harness\.|module-settings-harness\.)/.test(line))
    .join('\n');
}

/** A value as an error message names it: `an array`, `a number (5)`. */
export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return `an object of type ${value.constructor?.name ?? 'unknown'}`;
  return `a ${typeof value} (${inspect(value).slice(0, 80)})`;
}
