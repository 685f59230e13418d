/** A rule as users edit it, and as the service takes it. */
import type { WebhookDetail } from '../../../../../client/src/flowhook-client.ts';
import { isMail, type PeopleKind } from '../destination.ts';

type Rule = Pick<
  WebhookDetail,
  'name' | 'filter' | 'format' | 'template' | 'firstVersion' | 'cooldown' | 'digest' | 'timeZone'
>;
export type Format = Rule['format'];

/** Texts are empty where the rule has null. */
export interface RuleForm {
  name: string;
  filter: string;
  format: Format;
  /** JSON. */
  template: string;
  firstVersion: '' | 'send' | 'skip';
  cooldown: string;
  /** How matches are gathered: not at all, for a period, or until a time of the day. */
  digest: '' | 'every' | 'at';
  every: string;
  at: string;
  /** The zone of `at`. */
  atZone: string;
  /** The zone of times in messages for people. */
  timeZone: string;
}

export const NO_RULE: RuleForm = {
  name: '',
  filter: '',
  format: 'standard',
  template: '',
  firstVersion: '',
  cooldown: '',
  digest: '',
  every: '',
  at: '',
  atZone: '',
  timeZone: '',
};

/** The time zone of the browser: the one that a person probably means. */
export const MY_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The formats that a webhook with this URL may have. */
export function formatsOf(url: string): Format[] {
  if (isMail(url)) return ['mail'];
  return ['standard', 'cloudevents', 'template', 'slack', 'discord', 'teams'];
}

/** The formats that are read by people. */
export function isForPeople(format: Format): format is PeopleKind {
  return ['mail', 'slack', 'discord', 'teams'].includes(format);
}

export function formOf(rule: Rule): RuleForm {
  const { name, filter, format, template, firstVersion, cooldown, digest, timeZone } = rule;
  return {
    name: name ?? '',
    filter: filter ?? '',
    format,
    template: template === null ? '' : JSON.stringify(template, null, 2),
    // The service says what takes effect. What is the default anyway stays so when the filter changes.
    firstVersion: firstVersion === (seemsToReadRecords(filter ?? '') ? 'skip' : 'send') ? '' : firstVersion,
    cooldown: cooldown ?? '',
    ...digestForm(digest),
    timeZone: timeZone ?? '',
  };
}

function digestForm(digest: Rule['digest']): Pick<RuleForm, 'digest' | 'every' | 'at' | 'atZone'> {
  if (digest === null) return { digest: '', every: '', at: '', atZone: '' };
  if (typeof digest.every === 'string') return { digest: 'every', every: digest.every, at: '', atZone: '' };
  return { digest: 'at', every: '', at: digest.at ?? '', atZone: digest.timeZone ?? '' };
}

/** The rule without the name. @throws Error if the template is not JSON */
export function ruleOf(form: RuleForm) {
  const { filter, format, template, firstVersion, cooldown, timeZone } = form;
  return {
    filter: filter.trim() === '' ? null : filter.trim(),
    format,
    template: format === 'template' ? parsed(template) : null,
    firstVersion: firstVersion === '' ? null : firstVersion,
    cooldown: cooldown.trim() === '' ? null : cooldown.trim(),
    digest: digestOf(form),
    timeZone: timeZone === '' ? null : timeZone,
  };
}

function digestOf({ digest, every, at, atZone }: RuleForm): Rule['digest'] {
  if (digest === '') return null;
  if (digest === 'every') return { every: every.trim() };
  return { at, ...(atZone === '' ? {} : { timeZone: atZone }) };
}

function parsed(template: string): unknown {
  try {
    return JSON.parse(template);
  } catch (error) {
    throw new Error(`The template is not valid JSON: ${(error as Error).message}`);
  }
}

/** Whether a webhook with this rule differs from one without. */
export function hasRule(form: RuleForm): boolean {
  const { name: _, ...rule } = form;
  return (Object.keys(rule) as (keyof typeof rule)[]).some((key) => rule[key].trim() !== NO_RULE[key]);
}

/** Whether a filter seems to be about records, which only events with differences have. */
export function seemsToReadRecords(filter: string): boolean {
  return /(?<![.\w])(?:record|previous|changed?|id)\b/.test(filter);
}

/** A template to start with. */
export const FIRST_TEMPLATE = JSON.stringify({ text: `\${id} changed`, records: `\${differences}` }, null, 2);

/** A digest in words: `every 1h`, `at 08:00 (Europe/Zurich)`; null without one. */
export function digestWords(digest: Rule['digest']): string | null {
  if (digest === null) return null;
  if (typeof digest.every === 'string') return `every ${digest.every}`;
  return `at ${digest.at} (${digest.timeZone ?? 'UTC'})`;
}
