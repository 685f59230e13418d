/** The rule of a webhook: which events and differences it receives, and in which form. */
import { parseDuration } from '../std/amounts.ts';
import { nearest } from '../std/nearest.ts';
import { remembered } from '../std/remembered.ts';
import { Problem } from './error.ts';
import { compile, ExpressionMistake, MAX_EXPRESSION } from './expression.ts';
import { compileTemplate } from './template.ts';

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

const MIN_COOLDOWN_MS = 1_000;
const MAX_COOLDOWN_MS = 7 * 86_400_000;

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

/** Whether the webhook receives the first version of a workflow. */
export function effectiveFirstVersion(rule: Rule): 'send' | 'skip' {
  return rule.firstVersion ?? (readsRecord(rule.filter) ? 'skip' : 'send');
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

/**
 * Reads the fields of a rule from a request. A field that is missing keeps its value; null resets it. If the format
 * changes away from `template`, the template goes with it.
 *
 * @throws RuleMistake
 */
export function ruleFrom(fields: Readonly<Record<string, unknown>>, before: Rule = DEFAULT_RULE): Rule {
  const given = (name: RuleField): boolean => fields[name] !== undefined;
  const format = given('format') ? formatFrom(fields.format) : before.format;
  const kept = format === 'template' ? before.template : null;
  const rule: Rule = {
    filter: given('filter') ? filterFrom(fields.filter) : before.filter,
    format,
    template: given('template') ? fields.template : kept,
    firstVersion: given('firstVersion') ? firstVersionFrom(fields.firstVersion) : before.firstVersion,
    cooldownMs: given('cooldown') ? cooldownFrom(fields.cooldown) : before.cooldownMs,
  };
  checkTemplate(rule);
  if (readsRecord(rule.filter)) return rule;
  const advice =
    rule.filter === null ? 'set a filter such as `record.price < 50`' : 'this filter reads no record';
  if (rule.cooldownMs !== null) {
    throw new RuleMistake('cooldown', `a cooldown silences records that matched a filter; ${advice}`);
  }
  if (rule.firstVersion === 'skip') {
    throw new RuleMistake('firstVersion', `"skip" only applies to filters that read records; ${advice}`);
  }
  return { ...rule, firstVersion: null };
}

const MAX_KNOWN = 1_000;
const known = new Map<string, boolean>();

/**
 * Whether a filter reads records. The results are kept, because a long filter takes milliseconds to compile, and a list
 * shows many webhooks. A filter that another version of this program has saved may be invalid here: true.
 */
function readsRecord(filter: string | null): boolean {
  return filter !== null && remembered(known, filter, MAX_KNOWN, () => compiledReadsRecord(filter));
}

function compiledReadsRecord(filter: string): boolean {
  try {
    return compile(filter).readsRecord;
  } catch (error) {
    if (error instanceof ExpressionMistake) return true;
    throw error;
  }
}

function filterFrom(value: unknown): string | null {
  if (value === null) return null;
  if (typeof value !== 'string')
    throw new RuleMistake('filter', 'must be an expression in a string, or null');
  if (value.length > MAX_EXPRESSION) {
    throw new RuleMistake('filter', `must have at most ${MAX_EXPRESSION.toLocaleString('en')} characters`);
  }
  try {
    compile(value);
  } catch (error) {
    if (error instanceof ExpressionMistake) throw new RuleMistake('filter', error.message, error);
    throw error;
  }
  return value;
}

function formatFrom(value: unknown): Rule['format'] {
  if (value === null) return 'standard';
  const format = FORMATS.find((one) => one === value);
  if (format === undefined) throw new RuleMistake('format', choiceSentence(value, FORMATS));
  return format;
}

function firstVersionFrom(value: unknown): Rule['firstVersion'] {
  if (value === null) return null;
  const choice = FIRST_VERSIONS.find((one) => one === value);
  if (choice === undefined) throw new RuleMistake('firstVersion', choiceSentence(value, FIRST_VERSIONS));
  return choice;
}

function choiceSentence(value: unknown, choices: readonly string[]): string {
  const meant = typeof value === 'string' ? nearest(value, choices) : undefined;
  const advice = meant === undefined ? '' : `; did you mean "${meant}"?`;
  return `must be ${choices.map((one) => `"${one}"`).join(' or ')}${advice}`;
}

function cooldownFrom(value: unknown): number | null {
  if (value === null) return null;
  const ms = parseDuration(value);
  if (ms === undefined || ms < MIN_COOLDOWN_MS || ms > MAX_COOLDOWN_MS) {
    throw new RuleMistake('cooldown', 'must be a duration from "1s" to "7d", such as "90s", "30m" or "6h"');
  }
  return ms;
}

function checkTemplate(rule: Rule): void {
  if (rule.format !== 'template') {
    if (rule.template !== null)
      throw new RuleMistake('template', 'is only used with `"format": "template"`; set both');
    return;
  }
  if (rule.template === null) throw new RuleMistake('template', 'is required with `"format": "template"`');
  try {
    compileTemplate(rule.template);
  } catch (error) {
    if (error instanceof ExpressionMistake) throw new RuleMistake('template', error.message);
    throw error;
  }
}
