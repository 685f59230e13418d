/**
 * Reads and checks rules. A module of its own, because the libraries for expressions take 20 ms to load and 18 MB of
 * memory: a server loads them (`await import`) with the first rule or filter that somebody sends.
 */
import { parseDuration } from '../std/amounts.ts';
import { nearest } from '../std/nearest.ts';
import { remembered } from '../std/remembered.ts';
import { compile, ExpressionMistake } from './expression.ts';
import {
  DEFAULT_RULE,
  FIRST_VERSIONS,
  FORMATS,
  MAX_EXPRESSION,
  type Rule,
  type RuleField,
  RuleMistake,
} from './rule.ts';
import { compileTemplate } from './template.ts';

const MIN_COOLDOWN_MS = 1_000;
const MAX_COOLDOWN_MS = 7 * 86_400_000;

/** Whether the webhook receives the first version of a workflow. */
export function effectiveFirstVersion(rule: Rule): 'send' | 'skip' {
  return rule.firstVersion ?? (readsRecord(rule.filter) ? 'skip' : 'send');
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
    ...before,
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
