/** A rule as users edit it, and as the service takes it. */
import type { WebhookDetail } from '../../../../../client/src/flowhook-client.ts';

type Rule = Pick<WebhookDetail, 'name' | 'filter' | 'format' | 'template' | 'firstVersion' | 'cooldown'>;

/** Texts are empty where the rule has null. */
export interface RuleForm {
  name: string;
  filter: string;
  format: Rule['format'];
  /** JSON. */
  template: string;
  firstVersion: '' | 'send' | 'skip';
  cooldown: string;
}

export const NO_RULE: RuleForm = {
  name: '',
  filter: '',
  format: 'standard',
  template: '',
  firstVersion: '',
  cooldown: '',
};

export function formOf({ name, filter, format, template, firstVersion, cooldown }: Rule): RuleForm {
  return {
    name: name ?? '',
    filter: filter ?? '',
    format,
    template: template === null ? '' : JSON.stringify(template, null, 2),
    // The service says what takes effect. What is the default anyway stays so when the filter changes.
    firstVersion: firstVersion === (seemsToReadRecords(filter ?? '') ? 'skip' : 'send') ? '' : firstVersion,
    cooldown: cooldown ?? '',
  };
}

/** The rule without the name. @throws Error if the template is not JSON */
export function ruleOf({ filter, format, template, firstVersion, cooldown }: RuleForm) {
  return {
    filter: filter.trim() === '' ? null : filter.trim(),
    format,
    template: format === 'template' ? parsed(template) : null,
    firstVersion: firstVersion === '' ? null : firstVersion,
    cooldown: cooldown.trim() === '' ? null : cooldown.trim(),
  };
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
