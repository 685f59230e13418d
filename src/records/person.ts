/** A person who is to be found: what is theirs, what only mentions them, and texts without them. */
import { parseExactly } from '../model/record.ts';

export const ERASED = '[erased]';
/** A shorter id says nothing about anybody, and stands in texts for many other things. */
const TELLING_ID = 8;
/** Of more ids than these, texts are not searched for each: only differences of events are looked up by id. */
const MAX_SEARCHED_IDS = 20;

/** By address, by record id, or by both once the ids of the address are known. */
export interface Person {
  /** As it was given; compared without regard to case and to spaces around it. */
  email: string | null;
  /** Ids of their records, by workflow. Grows while looking. */
  ids: Map<string, Set<string>>;
}

/** Whether two addresses are the same for everybody who uses addresses. */
function sameEmail(one: unknown, other: string | null): boolean {
  return typeof one === 'string' && other !== null && normalEmail(one) === normalEmail(other);
}

/** Whether a text can be the address of a person: what has no @ stands in texts for many other things. */
export function isAddress(text: string): boolean {
  return /[^@\s]@[^@\s]/.test(text);
}

/** The form in which addresses are compared. */
export function normalEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** Whether a record is theirs: its id is one of theirs, or its address is. */
export function isTheirs(person: Person, at: { workflowId: string; id: string; body: string }): boolean {
  if (person.ids.get(at.workflowId)?.has(at.id)) return true;
  return sameEmail((JSON.parse(at.body) as { email?: unknown }).email, person.email);
}

/**
 * ASCII texts in lower case, one of which stands in every text that has to do with the person: what a database
 * can look for. More may contain them.
 */
export function needlesOf(person: Person, where: 'records' | 'texts'): string[] {
  const needles: string[] = [];
  if (person.email !== null) {
    // Without the part after the @: an excerpt may have been cut within the address.
    const local = person.email.trim().replace(/(?<=@)[^@]*$/su, '');
    needles.push(...spellings(local).map(asciiRun));
  }
  for (const id of searchedIds(person)) needles.push(...spellings(id).map(asciiRun));
  if (where === 'texts') {
    const ids = [...person.ids.values()].flatMap((some) => [...some]);
    if (ids.length > MAX_SEARCHED_IDS) needles.push('"differences":[{');
    else needles.push(...ids.map((id) => asciiRun(`"id":${JSON.stringify(id)}`)));
  }
  return [...new Set(needles)];
}

/** Ids that are looked for in any text. */
function searchedIds({ ids }: Person): string[] {
  const telling = tracesOf({ email: null, ids });
  return telling.length > MAX_SEARCHED_IDS ? [] : telling;
}

/** What stands for the person alone, wherever it is found: the address, and ids that are not everybody's. */
export function tracesOf({ email, ids }: Person): string[] {
  const telling = [...ids.values()].flatMap((some) => [...some]).filter((id) => id.length >= TELLING_ID);
  return [...new Set(email === null ? telling : [email.trim(), ...telling])];
}

/** Their longest run of ASCII characters: letters beyond it have other cases than the database knows of. */
function asciiRun(text: string): string {
  const runs = text.toLowerCase().match(/[\x20-\x7e]+/g) ?? [];
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '');
}

function jsonInside(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Finds the person in texts. Made anew when more ids are known. */
export interface Redactor {
  /** Whether it names the person anywhere. */
  mentions(text: string): boolean;
  /** Plain text: each line that names the person becomes `[erased]`, for the rest of it may tell more. */
  lines(text: string): string;
  /** The JSON text of a state: strings without the person, and nothing of an object that is theirs. Numbers stay. */
  json(text: string): string;
  /**
   * The body of an event: without the differences of their records, `truncated` if there were some; without the
   * address in those of others, and without the lines of an error or a reason that name the person. Everything else
   * is ours, and stays.
   */
  event(text: string, workflowId: string | null): string;
  /** The lines that name the person. */
  excerpts(text: string): string[];
  /** Whether an event's differences tell of their records. */
  tells(text: string, workflowId: string | null): boolean;
}

/** What may tell of a person in an event. */
interface EventData {
  differences?: unknown[];
  truncated?: boolean;
  error?: unknown;
  reason?: unknown;
  /** Of a webhook. */
  url?: unknown;
}

export function createRedactor(person: Person): Redactor {
  const ofAddress = addressPatterns(person);
  const patterns = [...ofAddress, ...idPatterns(person)];

  const names = (some: readonly RegExp[], text: string) =>
    some.some((pattern) => {
      pattern.lastIndex = 0;
      return pattern.test(text);
    });
  const mentions = (text: string) => names(patterns, text);
  const inline = (some: readonly RegExp[], text: string) =>
    some.reduce((rest, pattern) => rest.replace(pattern, ERASED), text);
  const lines = (text: string) =>
    mentions(text)
      ? text
          .split('\n')
          .map((line) => (mentions(line) ? ERASED : line))
          .join('\n')
      : text;

  /**
   * A number is nobody's: who counts or adds must go on with one.
   *
   * @param by what names the person here
   * @param theirs whether it lies within an object that is the person's
   */
  function clean(value: unknown, by: readonly RegExp[], theirs = false, key = ''): unknown {
    if (typeof value === 'string')
      return theirs ? ERASED : key === 'error' ? lines(value) : inline(by, value);
    if (Array.isArray(value)) return value.map((one) => clean(one, by, theirs));
    if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
    const inside = theirs || sameEmail((value as { email?: unknown }).email, person.email);
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        inline(by, name),
        clean(one, by, inside || names(by, name), name),
      ]),
    );
  }

  function isDifferenceOfTheirs(one: unknown, workflowId: string | null): boolean {
    const { id, fields } = one as {
      id: string;
      fields: { key: string; value?: unknown; previousValue?: unknown }[];
    };
    if (workflowId !== null && person.ids.get(workflowId)?.has(id)) return true;
    return fields.some(
      ({ key, value, previousValue }) =>
        key === 'email' && (sameEmail(value, person.email) || sameEmail(previousValue, person.email)),
    );
  }

  return {
    mentions,
    lines,
    excerpts: (text) => text.split('\n').filter(mentions),
    json: (text) => JSON.stringify(clean(parseExactly(text), patterns)),
    event(text, workflowId) {
      const body = parseExactly(text) as { data?: EventData };
      const { data } = body;
      if (Array.isArray(data?.differences)) {
        const others = data.differences.filter((one) => !isDifferenceOfTheirs(one, workflowId));
        if (others.length < data.differences.length) data.truncated = true;
        // An id of theirs may be anything in the record of somebody else: a date, a part number.
        data.differences = others.map((one) => clean(one, ofAddress));
      }
      if (typeof data?.error === 'string') data.error = lines(data.error);
      if (typeof data?.reason === 'string') data.reason = lines(data.reason);
      if (typeof data?.url === 'string') data.url = inline(ofAddress, data.url);
      return JSON.stringify(body);
    },
    tells(text, workflowId) {
      const { data } = JSON.parse(text) as { data?: { differences?: unknown[] } };
      return (data?.differences ?? []).some((one) => isDifferenceOfTheirs(one, workflowId));
    },
  };
}

/** What may stand before and after a name that is not a part of a longer one. */
const BEFORE = String.raw`(?<=^|[^\p{L}\p{N}_.+-]|\\[nrtbf]|%[0-9A-Fa-f]{2})`;
const AFTER = String.raw`(?![\p{L}\p{N}_-]|\.[\p{L}\p{N}])`;

function addressPatterns({ email }: Person): RegExp[] {
  if (email === null) return [];
  const address = email.trim();
  const at = address.lastIndexOf('@');
  const forms = spellings(address).map(RegExp.escape).join('|');
  const whole = new RegExp(`${BEFORE}(?:${forms})${AFTER}`, 'giu');
  if (at === -1) return [whole];
  // An excerpt may have been cut within the domain: `ada@exam…`.
  const cuts = [...address.slice(at + 1)].map((_, place, domain) => domain.slice(0, place).join(''));
  const starts = spellings(address.slice(0, at + 1))
    .map(RegExp.escape)
    .join('|');
  const ends = cuts.map((cut) => RegExp.escape(cut)).join('|');
  return [whole, new RegExp(`${BEFORE}(?:${starts})(?:${ends})(?=…|$)`, 'giu')];
}

function idPatterns(person: Person): RegExp[] {
  const telling = searchedIds(person);
  if (telling.length === 0) return [];
  const forms = [...new Set(telling.flatMap(spellings))].map(RegExp.escape).join('|');
  return [new RegExp(`${BEFORE}(?:${forms})${AFTER}`, 'gu')];
}

function spellings(text: string): string[] {
  return [...new Set([text, jsonInside(text), encodeURIComponent(text)])];
}
