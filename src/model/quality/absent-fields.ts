/** Finds expectations that a run cannot have checked, because none of its records has the field. */
import { nearest } from '../../std/nearest.ts';
import type { Expect } from './expect.ts';
import type { Profile } from './profile.ts';

/**
 * Sentences about fields with expectations that no record of a run has: the name may be misspelled. Fields with `filled`
 * are left out, because they have a finding.
 */
export function absentFields(
  fields: Expect['fields'],
  { records, fields: found, omitted }: Profile,
): string[] {
  // An omitted field may be the one that was expected.
  if (records === 0 || omitted > 0) return [];
  const names = found.map(({ name }) => name);
  const known = new Set(names);
  return Object.entries(fields)
    .filter(([name, { filled }]) => !known.has(name) && filled === null)
    .map(([name]) => {
      const meant = nearest(name, names);
      const advice = meant === undefined ? '' : `. Did you mean \`${meant}\`?`;
      return `No record has the field \`${name}\`, so \`expect\` did not check it${advice}`;
    });
}
