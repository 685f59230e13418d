/**
 * Reads and checks rules. A module of its own, because the libraries for expressions take 20 ms to load and 18 MB of
 * memory: a server loads them (`await import`) with the first rule or filter that somebody sends.
 */
import { parseDuration } from '../std/amounts.ts';
import { nearest } from '../std/nearest.ts';
import { remembered } from '../std/remembered.ts';
import { type Digest, digestMistake } from './digest.ts';
import { compile, ExpressionMistake } from './expression.ts';
import { isMailUrl } from './messages/mail-address.ts';
import {
  DEFAULT_RULE,
  FIRST_VERSIONS,
  FORMATS,
  FORMATS_FOR_PEOPLE,
  isForPeople,
  MAX_EXPRESSION,
  type Rule,
  type RuleField,
  RuleMistake,
} from './rule.ts';
import { timeZoneMistake } from './schedule.ts';
import { compileTemplate } from './template.ts';

const MIN_COOLDOWN_MS = 1_000;
const MAX_COOLDOWN_MS = 7 * 86_400_000;

/** Whether the webhook receives the first version of a workflow. */
export function effectiveFirstVersion(rule: Rule): 'send' | 'skip' {
  return rule.firstVersion ?? (readsRecord(rule.filter) ? 'skip' : 'send');
}

/**
 * Reads the fields of a rule from a request. A field that is missing keeps its value; null resets it. If the format
 * changes away from `template`, the template goes with it; if it changes to one that programs read, so does the zone.
 *
 * @param url of the webhook: mail has a format of its own. Undefined: any format is accepted
 * @throws RuleMistake
 */
export function ruleFrom(
  fields: Readonly<Record<string, unknown>>,
  before: Rule = DEFAULT_RULE,
  url?: string,
): Rule {
  const given = (name: RuleField): boolean => fields[name] !== undefined;
  const isNew = before === DEFAULT_RULE;
  const format = formatFor(url, given('format') ? formatFrom(fields.format) : isNew ? null : before.format);
  const rule: Rule = {
    filter: given('filter') ? filterFrom(fields.filter) : before.filter,
    format,
    template: given('template') ? fields.template : format === 'template' ? before.template : null,
    firstVersion: given('firstVersion') ? firstVersionFrom(fields.firstVersion) : before.firstVersion,
    cooldownMs: given('cooldown') ? cooldownFrom(fields.cooldown) : before.cooldownMs,
    digest: given('digest') ? digestFrom(fields.digest) : before.digest,
    timeZone: given('timeZone')
      ? timeZoneFrom(fields.timeZone)
      : isForPeople(format)
        ? before.timeZone
        : null,
  };
  checkTemplate(rule);
  checkTimes(rule, { isDigestNew: given('digest') });
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

function formatFrom(value: unknown): Rule['format'] | null {
  if (value === null) return null;
  const format = FORMATS.find((one) => one === value);
  if (format === undefined) throw new RuleMistake('format', choiceSentence(value, FORMATS));
  return format;
}

/** The format that goes with the URL. @param chosen null: the default */
function formatFor(url: string | undefined, chosen: Rule['format'] | null): Rule['format'] {
  if (url === undefined || !isMailUrl(url)) {
    if (url === undefined || chosen !== 'mail') return chosen ?? 'standard';
    throw new RuleMistake('format', '"mail" needs a `webhookUrl` such as "mailto:ops@example.org"');
  }
  if (chosen === null || chosen === 'mail') return 'mail';
  throw new RuleMistake('format', 'a webhook that sends mail has the format "mail": omit `format`');
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
  return `must be ${oneOf(choices)}${advice}`;
}

function oneOf(choices: readonly string[]): string {
  const quoted = choices.map((one) => `"${one}"`);
  return quoted.length < 3 ? quoted.join(' or ') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

function cooldownFrom(value: unknown): number | null {
  if (value === null) return null;
  const ms = parseDuration(value);
  if (ms === undefined || ms < MIN_COOLDOWN_MS || ms > MAX_COOLDOWN_MS) {
    throw new RuleMistake('cooldown', 'must be a duration from "1s" to "7d", such as "90s", "30m" or "6h"');
  }
  return ms;
}

/** Checks what does not fit together: a digest with a cooldown, and a zone without messages for people. */
function checkTimes(
  { digest, cooldownMs, timeZone, format }: Rule,
  { isDigestNew }: { isDigestNew: boolean },
): void {
  if (digest !== null && cooldownMs !== null) {
    throw new RuleMistake(
      isDigestNew ? 'digest' : 'cooldown',
      'a digest already gathers what happens to a record into one message: remove the ' +
        (isDigestNew ? 'cooldown with `"cooldown": null`' : 'digest with `"digest": null`'),
    );
  }
  if (timeZone !== null && !isForPeople(format)) {
    throw new RuleMistake(
      'timeZone',
      `sets the times in messages for people; the format "${format}" has times in UTC. ` +
        `Use it with ${oneOf(FORMATS_FOR_PEOPLE)}, or omit it`,
    );
  }
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

const DIGEST_FORMS = '{ "every": "1h" } or { "at": "08:00", "timeZone": "Europe/Zurich" }';

function digestFrom(value: unknown): Digest | null {
  if (value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    const meant = typeof value === 'string' ? (nearestTime(value) ?? nearestPeriod(value)) : undefined;
    refuseDigest(`must be ${meant ?? DIGEST_FORMS}, or null for no digest`);
  }
  const { every, at, timeZone } = value as Record<string, unknown>;
  if ((every === undefined) === (at === undefined)) {
    refuseDigest(
      `must have either \`every\` or \`at\`, found ${every === undefined ? 'neither' : 'both'}: write ${DIGEST_FORMS}`,
    );
  }
  if (at !== undefined) return timeOfDay(at, timeZone);
  if (timeZone !== undefined) {
    refuseDigest(
      '`timeZone` belongs to `at`. The field `timeZone` of the webhook sets the zone of times in messages',
    );
  }
  return period(every);
}

function period(every: unknown): Digest {
  const digest = { everyMs: parseDuration(every) ?? Number.NaN };
  const mistake = digestMistake(digest);
  return mistake === undefined
    ? digest
    : refuseDigest(`\`every\` ${mistake}${meaning(nearestPeriod(String(every)))}`);
}

function timeOfDay(at: unknown, timeZone: unknown = 'UTC'): Digest {
  const ofTime = digestMistake({ at: String(at), timeZone: 'UTC' });
  if (ofTime !== undefined)
    refuseDigest(`\`at\` ${ofTime}${meaning(nearestTime(String(at), { isTime: true }))}`);
  const digest = { at: String(at), timeZone: String(timeZone) };
  const ofZone = digestMistake(digest);
  return ofZone === undefined ? digest : refuseDigest(`\`timeZone\` ${ofZone}`);
}

function refuseDigest(sentence: string): never {
  throw new RuleMistake('digest', sentence);
}

const meaning = (meant: string | undefined) => (meant === undefined ? '' : `; did you mean ${meant}?`);

/** The digest that was probably meant by `8:00`, `8am`, `08:00:00` or, if it is a time, `8`. */
function nearestTime(written: string, { isTime = written.includes(':') } = {}): string | undefined {
  const text = written.trim().toLowerCase();
  const [, hour, minute = '00', half] = /^(\d{1,2})(?:[:.](\d{2}))?(?::00)? ?(am|pm)?$/.exec(text) ?? [];
  if (hour === undefined || (half === undefined && !isTime)) return undefined;
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (half === 'pm' ? 12 : 0);
  const at = `${String(hours).padStart(2, '0')}:${minute}`;
  return digestMistake({ at, timeZone: 'UTC' }) === undefined ? `{ "at": "${at}" }` : undefined;
}

const WORDS: Readonly<Record<string, string>> = { hourly: '1h', daily: '1d', weekly: '7d' };

/** The digest that was probably meant by `1h`, `1 hour`, `90 min` or `daily`. */
function nearestPeriod(written: string): string | undefined {
  const text = written.trim().toLowerCase();
  const [, count = '1', unit] = /^(\d+)? ?(m|h|d)(?:in|our|ay)?[a-z]*$/.exec(text) ?? [];
  const every = WORDS[text] ?? (unit === undefined ? undefined : `${count}${unit}`);
  const everyMs = parseDuration(every);
  const isValid = everyMs !== undefined && digestMistake({ everyMs }) === undefined;
  return isValid ? `{ "every": "${every}" }` : undefined;
}

function timeZoneFrom(value: unknown): string | null {
  if (value === null) return null;
  const mistake =
    typeof value === 'string'
      ? timeZoneMistake(value)
      : 'must be the name of a time zone, such as "Europe/Zurich", or null for the default';
  if (mistake !== undefined) throw new RuleMistake('timeZone', mistake);
  return value as string;
}
