/** Reads definitions that earlier versions stored. */
import { fieldNames } from '../http-source.ts';
import type { Definition, Mode } from '../workflow.ts';
import { expectOfGuards, type OldGuards } from './expect.ts';
import { defaultMinRecords } from './judge.ts';

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
