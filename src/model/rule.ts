/** The rule of a webhook: which events and differences it receives, and in which form. */
import { Problem } from './error.ts';

/** Maximum number of characters of an expression. */
export const MAX_EXPRESSION = 4_096;

export const FORMATS = ['standard', 'cloudevents', 'template'] as const;
export const FIRST_VERSIONS = ['send', 'skip'] as const;

export interface Rule {
  /** An expression; null lets everything pass. */
  filter: string | null;
  format: (typeof FORMATS)[number];
  /** JSON value whose strings may hold `${…}`; null unless the format is `template`. */
  template: unknown;
  /** Whether the first version of a workflow is sent; null: skip it if the filter reads records. */
  firstVersion: (typeof FIRST_VERSIONS)[number] | null;
  /** From 1 s to 7 days, only with a filter that reads records: a record that was sent is silent for this long. */
  cooldownMs: number | null;
}

export const DEFAULT_RULE: Rule = {
  filter: null,
  format: 'standard',
  template: null,
  firstVersion: null,
  cooldownMs: null,
};

/** Names of the fields in requests. */
export const RULE_FIELDS = ['filter', 'format', 'template', 'firstVersion', 'cooldown'] as const;
export type RuleField = (typeof RULE_FIELDS)[number];

/** A field of a rule is invalid. The message names the field and, for expressions, the place. */
export class RuleMistake extends Problem {
  readonly field: RuleField;
  /** Position in the filter, in characters; null if the mistake has no place there. */
  readonly from: number | null;
  readonly to: number | null;

  constructor(field: RuleField, message: string, place?: { from: number; to: number }) {
    super('field_invalid', { sentence: `\`${field}\`: ${message}` });
    this.field = field;
    this.from = place?.from ?? null;
    this.to = place?.to ?? null;
  }
}

/** Whether anything differs from a webhook without a rule. */
export function hasRule(rule: Rule): boolean {
  return rule.filter !== null || rule.format !== 'standard';
}

/** A cooldown as requests write it: `6h`, `90s`. */
export function durationText(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const;
  const unit = units.find(([, size]) => ms >= size && ms % size === 0);
  return unit === undefined ? `${ms / 1_000}s` : `${ms / unit[1]}${unit[0]}`;
}
