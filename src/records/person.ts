/** Recognizes a person in records and texts, and redacts texts. */
import { escapedMarkdown } from '../model/messages/discord-markdown.ts';
import { recordWords } from '../model/quality/judge.ts';
import { escapedHtml } from '../std/escaped-html.ts';
import { parseExactly } from '../std/exact-json.ts';

export const ERASED = '[erased]';
/** Ids shorter than this are not searched for in texts, where they often have another meaning. */
const MIN_SEARCHED_ID_LENGTH = 8;
/**
 * If the person has more ids than this, texts are not searched for ids. Then only the differences of events are matched
 * by id.
 */
const MAX_SEARCHED_IDS = 20;

/**
 * A person, identified by an email address, by record ids, or by both once the ids of the records with this address are
 * known.
 */
export interface Person {
  /** The email address as entered. Comparisons ignore case and surrounding white space. */
  email: string | null;
  /** Ids of the person's records by workflow. A search adds the ids that it finds. */
  ids: Map<string, Set<string>>;
}

/** Whether a value is the given email address, ignoring case and surrounding white space. */
function sameEmail(one: unknown, other: string | null): boolean {
  return typeof one === 'string' && other !== null && normalEmail(one) === normalEmail(other);
}

/**
 * Whether a text looks like an email address. A text without an @ is rejected, because it would match too much in other
 * texts.
 */
export function isAddress(text: string): boolean {
  return /[^@\s]@[^@\s]/.test(text);
}

/** Normalizes an email address for comparison. */
export function normalEmail(email: string): string {
  return email.trim().toLowerCase();
}

/**
 * Whether a record belongs to the person: its id is one of the person's ids, or its `email` is the person's address.
 */
export function isTheirs(person: Person, at: { workflowId: string; id: string; body: string }): boolean {
  if (person.ids.get(at.workflowId)?.has(at.id)) return true;
  return sameEmail((JSON.parse(at.body) as { email?: unknown }).email, person.email);
}

/**
 * Lowercase ASCII texts that a database can search for. Every text that concerns the person contains at least one of
 * them. Texts that do not concern the person may contain them too.
 */
export function needlesOf(person: Person, where: 'records' | 'texts'): string[] {
  const needles: string[] = [];
  if (person.email !== null) {
    // The address is searched for without its domain, because an excerpt may end within the address.
    const local = person.email.trim().replace(/(?<=@)[^@]*$/su, '');
    needles.push(...spellings(local).map(asciiRun));
  }
  for (const id of searchedIds(person)) needles.push(...spellings(id).map(asciiRun));
  if (where === 'texts') {
    const ids = [...person.ids.values()].flatMap((some) => [...some]);
    if (ids.length > MAX_SEARCHED_IDS) needles.push('"differences":[{');
    else needles.push(...ids.flatMap((id) => [`"id":${JSON.stringify(id)}`, ...quotesOf(id)]).map(asciiRun));
  }
  return [...new Set(needles)];
}

/** How a finding, and a sentence about it, name the record whose value they quote. They do so for ids of any length. */
function quotesOf(id: string): string[] {
  return [`"examples":[${JSON.stringify(id)}`, ...spellings(recordWords(id))];
}

/** The ids that are searched for in all texts. */
function searchedIds({ ids }: Person): string[] {
  const longIds = tracesOf({ email: null, ids });
  return longIds.length > MAX_SEARCHED_IDS ? [] : longIds;
}

/** Texts that identify the person wherever they are found: the address, and ids that are long enough. */
export function tracesOf({ email, ids }: Person): string[] {
  const longIds = [...ids.values()]
    .flatMap((some) => [...some])
    .filter((id) => id.length >= MIN_SEARCHED_ID_LENGTH);
  return [...new Set(email === null ? longIds : [email.trim(), ...longIds])];
}

/**
 * The longest run of ASCII characters. Other characters are not searched for, because databases fold their case in
 * different ways.
 */
function asciiRun(text: string): string {
  const runs = text.toLowerCase().match(/[\x20-\x7e]+/g) ?? [];
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '');
}

function jsonInside(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/**
 * Finds and removes a person in texts. A redactor knows only the ids that the person has when the redactor is created.
 */
export interface Redactor {
  /** Whether the text mentions the person anywhere. */
  mentions(text: string): boolean;
  /**
   * Redacts plain text. Each line that mentions the person becomes `[erased]`, because the rest of the line may be
   * about the person too.
   */
  lines(text: string): string;
  /**
   * Redacts JSON. The person is removed from strings, and all strings in objects about the person are erased. Numbers
   * stay.
   */
  json(text: string): string;
  /**
   * Redacts the body of an event. Differences of the person's records are removed, which sets `truncated`. The address
   * is removed from differences of other records. Lines of an error or a reason that name the person are erased. A
   * digest has several lists of differences, and summaries of errors, to which the same applies.
   * Everything else is written by the service, and stays.
   */
  event(text: string, workflowId: string | null): string;
  /** The lines that name the person. */
  excerpts(text: string): string[];
  /** Redacts the findings of a job: JSON of a list. */
  findings(text: string): string;
  /** Whether the differences of an event concern the person's records. */
  concerns(text: string, workflowId: string | null): boolean;
}

/** Differences of one workflow, as an event lists them. */
export interface DifferenceList {
  differences: unknown[];
  truncated?: boolean;
}

/** The parts of an event's data that may concern a person. */
interface EventData extends Partial<DifferenceList> {
  error?: unknown;
  reason?: unknown;
  lastError?: unknown;
  /** The URL of a webhook. */
  url?: unknown;
  /** Of a digest: its lists, and other events, whose summaries quote errors. */
  workflows?: unknown;
  events?: unknown;
  findings?: unknown;
}

/** All lists of differences in an event, with the workflow of each. A digest has those of several workflows. */
export function listsIn(
  data: unknown,
  workflowId: string | null,
): { list: DifferenceList; workflowId: string | null }[] {
  const { workflows } = (data ?? {}) as EventData;
  const ofDigest = (Array.isArray(workflows) ? workflows : []).map((list) => ({
    list,
    workflowId: typeof list?.workflowId === 'string' ? list.workflowId : workflowId,
  }));
  return [{ list: data, workflowId }, ...ofDigest].filter(
    (one): one is { list: DifferenceList; workflowId: string | null } =>
      Array.isArray((one.list as DifferenceList | null | undefined)?.differences),
  );
}

export function createRedactor(person: Person): Redactor {
  const ofAddress = addressPatterns(person);
  const patterns = [...ofAddress, ...idPatterns(person)];
  const ids = new Set([...person.ids.values()].flatMap((some) => [...some]));

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
   * Removes the person from a JSON value. Numbers are kept, because a state may use them as counters.
   *
   * @param by patterns that match the person
   * @param theirs whether the value is inside an object about the person
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

  /** The value of a finding about the person is erased together with the ids of their records. */
  function withoutThem(findings: readonly unknown[]): unknown[] {
    return findings.map((one) => {
      if (!mentions(JSON.stringify(one))) return one;
      const { examples = [], ...finding } = clean(one, patterns) as { examples?: string[] };
      return { ...finding, found: ERASED, examples: examples.map((id) => (ids.has(id) ? ERASED : id)) };
    });
  }

  return {
    mentions,
    lines,
    findings: (text) => JSON.stringify(withoutThem(parseExactly(text) as unknown[])),
    excerpts: (text) => text.split('\n').filter(mentions),
    json: (text) => JSON.stringify(clean(parseExactly(text), patterns)),
    event(text, workflowId) {
      const body = parseExactly(text) as { data?: EventData };
      const { data } = body;
      for (const { list, workflowId: at } of listsIn(data, workflowId)) {
        const others = list.differences.filter((one) => !isDifferenceOfTheirs(one, at));
        if (others.length < list.differences.length) list.truncated = true;
        // Only the address is removed from another person's record, where the same id may mean anything, such as a
        // date.
        list.differences = others.map((one) => clean(one, ofAddress));
      }
      for (const name of ['error', 'reason', 'lastError'] as const) {
        const text = data?.[name];
        if (data !== undefined && typeof text === 'string') data[name] = lines(text);
      }
      for (const one of Array.isArray(data?.events) ? data.events : []) {
        if (typeof one?.summary === 'string') one.summary = lines(one.summary);
      }
      if (Array.isArray(data?.findings)) data.findings = withoutThem(data.findings);
      if (typeof data?.url === 'string') data.url = inline(ofAddress, data.url);
      return JSON.stringify(body);
    },
    concerns(text, workflowId) {
      const { data } = JSON.parse(text) as { data?: unknown };
      return listsIn(data, workflowId).some(({ list, workflowId: at }) =>
        list.differences.some((one) => isDifferenceOfTheirs(one, at)),
      );
    },
  };
}

/** Patterns for the characters around a match, which ensure that the match is not part of a longer word. */
const BEFORE = String.raw`(?<=^|[^\p{L}\p{N}_.+-]|\\[nrtbf]|%[0-9A-Fa-f]{2})`;
const AFTER = String.raw`(?![\p{L}\p{N}_-]|\.[\p{L}\p{N}])`;

function addressPatterns({ email }: Person): RegExp[] {
  if (email === null) return [];
  const address = email.trim();
  const at = address.lastIndexOf('@');
  const forms = spellings(address).map(RegExp.escape).join('|');
  const whole = new RegExp(`${BEFORE}(?:${forms})${AFTER}`, 'giu');
  if (at === -1) return [whole];
  // An excerpt may have been truncated within the domain of an address: `ada@exam…`.
  const cuts = [...address.slice(at + 1)].map((_, place, domain) => domain.slice(0, place).join(''));
  const starts = spellings(address.slice(0, at + 1))
    .map(RegExp.escape)
    .join('|');
  const ends = cuts.map((cut) => RegExp.escape(cut)).join('|');
  return [whole, new RegExp(`${BEFORE}(?:${starts})(?:${ends})(?=…|$)`, 'giu')];
}

function idPatterns(person: Person): RegExp[] {
  const ids = [...new Set([...person.ids.values()].flatMap((some) => [...some]))];
  const forms = [
    ...searchedIds(person).flatMap(spellings),
    ...(ids.length > MAX_SEARCHED_IDS ? [] : ids.flatMap(quotesOf)),
  ];
  if (forms.length === 0) return [];
  return [new RegExp(`${BEFORE}(?:${[...new Set(forms)].map(RegExp.escape).join('|')})${AFTER}`, 'gu')];
}

/** The forms in which a text may be written in JSON, in URLs, and in messages for people. */
function spellings(text: string): string[] {
  const plain = [text, escapedMarkdown(text), escapedHtml(text)];
  return [...new Set([...plain, ...plain.map(jsonInside), encodeURIComponent(text)])];
}
