/** Profiles of runs as points of plots, and the expectations that they suggest. */
import type { Profile, ProfileField } from '../../../../client/src/flowhook-client.ts';

/** The value of one run; null if the run has none. */
export interface Point {
  version: number;
  /** ISO 8601. */
  at: string;
  value: number | null;
}

/** Percent of the records, a number of values, or the largest number (of texts: the longest length). */
export type Measure = 'filled' | 'distinct' | 'largest';

/** The values of a field, oldest run first. @param profiles newest first */
export function pointsOf(profiles: readonly Profile[], name: string, measure: Measure): Point[] {
  return profiles.toReversed().map((profile) => ({
    version: profile.version,
    at: profile.createdAt,
    value: measured(profile, name, measure),
  }));
}

function measured({ fields, records }: Profile, name: string, measure: Measure): number | null {
  const field = fields.find((each) => each.name === name);
  if (measure === 'filled')
    return records === 0 ? null : Math.round((1_000 * (field?.filled ?? 0)) / records) / 10;
  if (measure === 'distinct') return field?.distinct ?? null;
  return field?.max ?? field?.longest ?? null;
}

/** `3 to 80`, `2026-01-01 to 2026-11-24`, `4 to 20 characters`. */
export function rangeWords({ min, max, shortest, longest, earliest, latest }: ProfileField): string {
  const words = (from: unknown, to: unknown) => (from === to ? String(from) : `${from} to ${to}`);
  if (min !== null) return words(min, max);
  if (earliest !== null) return words(earliest, latest);
  return shortest === null ? '–' : `${words(shortest, longest)} characters`;
}

/** The suggested expectation of one field, as a part of a definition; undefined if there is none. */
export function expectationOf(
  expect: Record<string, unknown>,
  name: string,
): Record<string, unknown> | undefined {
  const fields = (expect.fields ?? {}) as Record<string, unknown>;
  return Object.hasOwn(fields, name) ? { expect: { fields: { [name]: fields[name] } } } : undefined;
}

/** Merges a part into a definition; objects are merged, other values replaced. */
export function merged(
  definition: Record<string, unknown>,
  part: Record<string, unknown>,
): Record<string, unknown> {
  const result = { ...definition };
  for (const [name, value] of Object.entries(part)) {
    const before = result[name];
    result[name] = isObject(before) && isObject(value) ? merged(before, value) : value;
  }
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** YAML in block style. Scalars are written as JSON, which is YAML as well. */
export function yamlOf(value: Record<string, unknown>, indent = ''): string {
  return Object.entries(value)
    .map(([name, each]) => {
      const key = /^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name);
      return isObject(each)
        ? `${indent}${key}:\n${yamlOf(each, `${indent}  `)}`
        : `${indent}${key}: ${JSON.stringify(each)}\n`;
    })
    .join('');
}
