/** `guards`, which `expect` has replaced: files of earlier versions and stored definitions still have them. */
import { fieldNames } from '../http-source.ts';
import type { Definition, Mode } from '../workflow.ts';
import { EXPECT_NO_FIELD, EXPECT_NOTHING, type Expect } from './expect.ts';
import { defaultMinRecords } from './judge.ts';

interface OldGuards {
  minRecords?: number | null;
  maxDropPercent?: number | null;
  required?: readonly string[] | null;
  minFilledPercent?: number | null;
}

/**
 * Reads `guards` as `expect`.
 *
 * @param fields the fields that an HTTP source reads: without `required`, `minFilledPercent` was about all of them
 */
export function expectOfGuards(guards: OldGuards, fields: readonly string[] = []): Expect {
  const { minRecords = null, maxDropPercent = null, required = null, minFilledPercent = null } = guards;
  const filled = minFilledPercent ?? 100;
  const names = required ?? (minFilledPercent === null ? [] : fields);
  return {
    ...EXPECT_NOTHING,
    records: { ...EXPECT_NOTHING.records, min: minRecords, drop: maxDropPercent },
    fields: Object.fromEntries(names.map((name) => [name, { ...EXPECT_NO_FIELD, filled }])),
  };
}

/** A stored definition. Earlier versions stored `guards`, and in an HTTP source `filled`, instead of `expect`. */
export function storedDefinition(text: string): Definition {
  const stored = JSON.parse(text) as Definition & { guards?: OldGuards };
  if (stored.guards === undefined) return stored;
  const { guards, ...definition } = stored;
  const { source, mode } = definition;
  if (source.type !== 'http') return { ...definition, expect: expectOfGuards(ofMode(guards, mode)) };
  const { filled, ...http } = source as typeof source & {
    filled?: { fields: string[] | null; minPercent: number } | null;
  };
  const ofSource = filled == null ? {} : { required: filled.fields, minFilledPercent: filled.minPercent };
  return {
    ...definition,
    source: http,
    expect: expectOfGuards({ ...ofMode(guards, mode), ...ofSource }, fieldNames(http)),
  };
}

/** Earlier versions stored the default of `minRecords`. */
function ofMode(guards: OldGuards, mode: Mode): OldGuards {
  return guards.minRecords === defaultMinRecords(mode) ? { ...guards, minRecords: null } : guards;
}
