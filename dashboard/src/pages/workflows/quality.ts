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

/** A definition that also expects this of the field. */
export function withExpectation(definition: object, field: string, expected: object): object {
  const { expect } = definition as { expect?: { fields?: Record<string, object> } };
  const fields = { ...expect?.fields, [field]: { ...expect?.fields?.[field], ...expected } };
  return { ...definition, expect: { ...expect, fields } };
}

/** The same as a part of a YAML file, which may contain JSON. */
export function yamlOf(field: string, expected: object): string {
  const json = JSON.stringify(expected, null, 1).replaceAll(/\n\s*/g, ' ');
  return `expect:\n  fields:\n    ${JSON.stringify(field)}: ${json}\n`;
}
