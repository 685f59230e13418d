/** The rule of a webhook: which events and differences it receives, and in which form. */
import type { Digest } from './digest.ts';
import { Problem } from './error.ts';

/** Maximum number of characters of an expression. */
export const MAX_EXPRESSION = 4_096;

export const FORMATS = ['standard', 'cloudevents', 'template', 'slack', 'discord', 'teams', 'mail'] as const;
type Format = (typeof FORMATS)[number];
/** The formats that people read. */
export const FORMATS_FOR_PEOPLE = ['slack', 'discord', 'teams', 'mail'] as const;
export type FormatForPeople = (typeof FORMATS_FOR_PEOPLE)[number];
export const FIRST_VERSIONS = ['send', 'skip'] as const;

export interface Rule {
  /** An expression; null lets everything pass. */
  filter: string | null;
  format: Format;
  /** JSON value whose strings may hold `${…}`; null unless the format is `template`. */
  template: unknown;
  /** Whether the first version of a workflow is sent; null: skip it if the filter reads records. */
  firstVersion: (typeof FIRST_VERSIONS)[number] | null;
  /** From 1 s to 7 days, only with a filter that reads records: a record that was sent is silent for this long. */
  cooldownMs: number | null;
  /** When what matches is sent, in one message; null: immediately. */
  digest: Digest | null;
  /** The zone of times in messages for people, as an IANA name; null: that of the digest, or UTC. */
  timeZone: string | null;
}

export const DEFAULT_RULE: Rule = {
  filter: null,
  format: 'standard',
  template: null,
  firstVersion: null,
  cooldownMs: null,
  digest: null,
  timeZone: null,
};

/** Reads a rule that was stored as JSON. Rules of earlier versions have no digest and no zone. */
export function storedRule(text: string): Rule {
  return { ...DEFAULT_RULE, ...(JSON.parse(text) as Partial<Rule>) };
}

/** Whether people read the messages of a format. */
export function isForPeople(format: Format): format is FormatForPeople {
  return (FORMATS_FOR_PEOPLE as readonly Format[]).includes(format);
}

/** Whether two digests end at the same times. */
export function isSameDigest(one: Digest | null, other: Digest | null): boolean {
  if (one === null || other === null) return one === other;
  if ('everyMs' in one || 'everyMs' in other) {
    return 'everyMs' in one && 'everyMs' in other && one.everyMs === other.everyMs;
  }
  return one.at === other.at && one.timeZone === other.timeZone;
}

/** The zone of times in messages for people. */
export function timeZoneOf({ timeZone, digest }: Pick<Rule, 'timeZone' | 'digest'>): string {
  return timeZone ?? (digest !== null && 'timeZone' in digest ? digest.timeZone : 'UTC');
}

/** Names of the fields in requests. */
export const RULE_FIELDS = [
  'filter',
  'format',
  'template',
  'firstVersion',
  'cooldown',
  'digest',
  'timeZone',
] as const;
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
  return rule.filter !== null || rule.format !== 'standard' || rule.digest !== null;
}

/** A duration as requests write it: `6h`, `90s`. */
export function durationText(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const;
  const unit = units.find(([, size]) => ms >= size && ms % size === 0);
  return unit === undefined ? `${ms / 1_000}s` : `${ms / unit[1]}${unit[0]}`;
}

/** A digest in the form of the API. */
export type DigestFields = { every: string } | { at: string; timeZone: string };

export function digestFields(digest: Digest): DigestFields {
  return 'everyMs' in digest ? { every: durationText(digest.everyMs) } : digest;
}
