/** Makes expectations of what runs looked like: the `expect` of a definition, as its author writes it. */
import type { Mode } from '../workflow.ts';
import { isWhole } from './drift.ts';
import type { Profile, ProfileField, ValueKind } from './profile.ts';

/** A part of a definition, in the syntax of files. */
export interface SuggestedExpect {
  records?: { min: number; max: number; drop: string };
  fields?: Record<string, { type?: string; min?: number; filled?: string }>;
}

/** Forms of texts that an expectation has types for. */
const OWN_TYPES: readonly ValueKind[] = ['url', 'email', 'date', 'datetime', 'boolean', 'list', 'object'];

/**
 * @param profiles newest first. Runs of another kind than the newest are left out (`isWhole`)
 * @returns empty without profiles; fields that are not in every profile have no expectation
 */
export function suggestExpect(profiles: readonly (Profile & { mode: Mode })[]): SuggestedExpect {
  const [newest] = profiles;
  if (newest === undefined || newest.records === 0) return {};
  const alike = profiles.filter(({ mode, records }) => isWhole(mode) === isWhole(newest.mode) && records > 0);
  const counts = alike.map(({ records, duplicates }) => records - duplicates);
  const fields = newest.fields.flatMap(({ name }) => {
    const found = alike.map((profile) => {
      const field = profile.fields.find((one) => one.name === name);
      return field === undefined ? undefined : { field, share: field.filled / profile.records };
    });
    const there = found.filter((one) => one !== undefined);
    const expected = there.length < alike.length ? {} : fieldExpect(there);
    return Object.keys(expected).length === 0 ? [] : [[name, expected] as const];
  });
  return {
    ...(isWhole(newest.mode)
      ? {
          records: {
            // At least 1, because `min: 0` would allow a run without records, which deletes all data.
            min: Math.max(1, Math.floor(Math.min(...counts) / 2)),
            max: 2 * Math.max(...counts),
            drop: '30%',
          },
        }
      : {}),
    ...(fields.length === 0 ? {} : { fields: Object.fromEntries(fields) }),
  };
}

function fieldExpect(found: readonly { field: ProfileField; share: number }[]): {
  type?: string;
  min?: number;
  filled?: string;
} {
  const type = typeOf(new Set(found.flatMap(({ field }) => Object.keys(field.kinds) as ValueKind[])));
  const least = Math.min(...found.map(({ share }) => share));
  // A little below what was seen, so that the next run does not fail because of a single record.
  const percent = least === 1 ? 99 : Math.floor(100 * least) - 5;
  // Erasing a person removes the extremes of earlier profiles.
  const smallest = found.flatMap(({ field }) => field.min ?? []);
  const isPositive = type === 'number' && smallest.length > 0 && smallest.every((min) => min >= 0);
  return {
    ...(type === undefined ? {} : { type }),
    ...(isPositive ? { min: 0 } : {}),
    ...(percent > 0 ? { filled: `${percent}%` } : {}),
  };
}

/** The type that has all the kinds. */
function typeOf(kinds: ReadonlySet<ValueKind>): string | undefined {
  const [only, ...others] = kinds;
  if (only === undefined) return undefined;
  if (others.length === 0 && OWN_TYPES.includes(only)) return only;
  if ([...kinds].every((kind) => kind === 'integer' || kind === 'number')) return 'number';
  const isText = (kind: ValueKind) => ['text', 'numeric', 'url', 'email', 'date', 'datetime'].includes(kind);
  return [...kinds].every(isText) ? 'text' : undefined;
}
