/** Finds a person in everything that contains record contents, page by page. */

import { isMessageForPeople } from '../model/messages/message.ts';
import { ownTurn } from '../std/fair-share.ts';
import type { HeldText, RecordRow, TextPlace } from '../store/operations/erasure/find-content.ts';
import type { Store } from '../store/store.ts';
import {
  createRedactor,
  ERASED,
  isTheirs,
  listsIn,
  needlesOf,
  type Person,
  type Redactor,
} from './person.ts';

/** Where to search: one workflow, or all workflows of a team. */
export interface Scope {
  teamId: string;
  workflowId: string | null;
  /** The ids of all workflows in scope, including archived ones. */
  workflows: readonly string[];
}

/**
 * The register of all places besides records that may contain record contents, each with a function that removes a
 * person from a text in that place. Texts are erased in this order. Responses come before the events that caused them,
 * because the event shows whom a response is about. If you add a column that may contain record contents, register it
 * here. If you add a file that may contain them, delete the file in `forget` of `erase.ts`.
 */
export const TEXT_HOLDERS: Readonly<Record<TextPlace, (held: HeldText, redactor: Redactor) => string>> = {
  state: ({ text }, redactor) => redactor.json(text),
  // The whole response is erased if its event is about the person, because the receiver may echo more of the event than
  // the address.
  response: ({ text, about, workflowId }, redactor) =>
    isAboutThem(about, workflowId, redactor) ? ERASED : redactor.lines(text),
  // Response headers are removed if the event is about the person, because they may echo any part of the event. Request
  // headers stay, because they are set by the webhook.
  attemptDetails: ({ text, about, workflowId }, redactor) =>
    redactor.json(
      isAboutThem(about, workflowId, redactor)
        ? JSON.stringify({ ...JSON.parse(text), responseHeaders: {} })
        : text,
    ),
  attemptError: ({ text }, redactor) => redactor.lines(text),
  // The reason of a pause may quote the error of the last attempt.
  pausedReason: ({ text }, redactor) => redactor.lines(text),
  jobError: ({ text }, redactor) => redactor.lines(text),
  jobFindings: ({ text }, redactor) => redactor.findings(text),
  // The log of a job is NDJSON. Each log line is an array: [seq, at, level, text].
  jobLog: ({ text }, redactor) =>
    text
      .split('\n')
      .map((line) => JSON.stringify((JSON.parse(line) as unknown[]).map((part) => cleanText(part, redactor))))
      .join('\n'),
  // All numbers are counts, and stay.
  jobProgress: ({ text }, redactor) =>
    JSON.stringify(JSON.parse(text), (_, value: unknown) => cleanText(value, redactor)),
  fields: ({ text }, redactor) => redactor.json(text),
  profile: ({ text }, redactor) => redactor.json(text),
  quarantineReasons: ({ text }, redactor) => redactor.json(text),
  inspectedRequest: ({ text }, redactor) =>
    JSON.stringify(JSON.parse(text), (_, value: unknown) => cleanText(value, redactor)),
  // The body is usually an event, but anyone can send anything to an inspector, so the body is replaced as a whole.
  inspectedBody: ({ text, workflowId }, redactor) =>
    redactor.mentions(text) || isEventAbout(text, workflowId, redactor) ? ERASED : text,
  // A template may have turned the person's record into any text, so a body with another form than an event is replaced
  // as a whole if its event is about the person.
  deliveryBody: ({ text, about, workflowId }, redactor) => {
    if (hasDifferences(text)) return redactor.event(text, workflowId);
    // In a message for people, the name of the person is beside the text that was found.
    if (isMessageForPeople(text) && redactor.mentions(text)) return JSON.stringify(ERASED);
    return isAboutThem(about, workflowId, redactor) ? JSON.stringify(ERASED) : redactor.json(text);
  },
  // The decision starts again. Any text that the search finds is replaced, because it may contain parts of records.
  decisionProgress: () => '{}',
  decisionReason: ({ text }, redactor) => redactor.lines(text),
  ruleMistake({ text, workflowId }, redactor) {
    const mistake = JSON.parse(text) as { recordId: string | null; message: string };
    if (mistake.recordId === null || !isTheirRecord({ id: mistake.recordId }, workflowId, redactor)) {
      return redactor.json(text);
    }
    return JSON.stringify({ ...mistake, recordId: null, message: ERASED });
  },
  // The whole row is deleted. Quiet records of other people stay, like the records themselves.
  quietRecord: ({ text, workflowId }, redactor) =>
    isTheirRecord({ id: text }, workflowId, redactor) ? '' : text,
  quietSent: ({ text, workflowId }, redactor) =>
    isTheirRecord(JSON.parse(text), workflowId, redactor) ? '' : text,
  quietNewest: ({ key, text, workflowId }, redactor) => {
    if (isEventOfDigest(key)) return withSummary(text, redactor);
    return isTheirRecord(JSON.parse(text), workflowId, redactor) ? '' : text;
  },
  event: ({ text, workflowId }, redactor) => redactor.event(text, workflowId),
  // The whole row is deleted. Records of other people stay, like those that are published. These records come last,
  // because they show the ids of a person who was never published.
  quarantined: ({ text, workflowId }, redactor) =>
    isTheirRecord(JSON.parse(text), workflowId, redactor) ? '' : text,
};

/** Whether a record belongs to the person. At least its id is known. */
function isTheirRecord(record: { id: string }, workflowId: string | null, redactor: Redactor): boolean {
  const fields = Object.entries(record).map(([key, value]) => ({ key, value }));
  const event = JSON.stringify({ data: { differences: [{ id: record.id, fields }] } });
  return redactor.mentions(record.id) || redactor.concerns(event, workflowId);
}

/** Whether the row with this key keeps an event for a digest, instead of a record (`eventKey`). */
function isEventOfDigest(key: string): boolean {
  return String((JSON.parse(key) as unknown[])[2]).startsWith('!');
}

/** The event that a digest keeps, without the lines of its summary that name the person. */
function withSummary(text: string, redactor: Redactor): string {
  const kept = JSON.parse(text) as { summary: string | null };
  return JSON.stringify({ ...kept, summary: kept.summary && redactor.lines(kept.summary) });
}

/** Whether a body has differences like an event, and so the form of an event. */
export function hasDifferences(text: string): boolean {
  const lists = listsIn((JSON.parse(text) as { data?: unknown } | null)?.data, null);
  return lists.length > 0 && lists.every(({ list }) => list.differences.every(isDifference));
}

function isDifference(one: unknown): boolean {
  return Array.isArray((one as { fields?: unknown } | null)?.fields);
}

/** Whether one of the bodies to which a text belongs is an event about the person. */
function isAboutThem(about: string | null, workflowId: string | null, redactor: Redactor): boolean {
  const bodies = about?.split('\n') ?? [];
  return bodies.some((one) => isEventAbout(one, workflowId, redactor));
}

/**
 * Whether a text is an event about the person. The text may have any form, because anyone can send anything to an
 * inspector.
 */
function isEventAbout(text: string, workflowId: string | null, redactor: Redactor): boolean {
  try {
    return redactor.concerns(text, workflowId);
  } catch {
    return false;
  }
}

function cleanText(value: unknown, redactor: Redactor): unknown {
  return typeof value === 'string' ? redactor.lines(value) : value;
}

/**
 * Yields rows of the person's records, and rows of other records that mention the person. Adds the ids of the person's
 * records to `person`, so that a second search also finds other rows with these ids.
 */
export async function* findRecords(
  store: Store,
  scope: Scope,
  person: Person,
): AsyncGenerator<{ workflowId: string; row: RecordRow; theirs: boolean }> {
  const { teamId } = scope;
  for (const workflowId of scope.workflows) {
    const ids = person.ids.get(workflowId) ?? new Set();
    person.ids.set(workflowId, ids);
    let after: string | null = null;
    do {
      // The loop must yield, because reads of SQLite finish within one turn of the event loop, and there may be
      // millions of records.
      await ownTurn(teamId);
      const page = await store.erasure.scanRecords({
        teamId,
        workflowId,
        needles: needlesOf(person, 'records'),
        ids: [...ids],
        after,
      });
      const redactor = createRedactor(person);
      for (const row of page.rows) {
        const theirs = isTheirs(person, { workflowId, ...row });
        if (theirs) ids.add(row.id);
        if (theirs || redactor.mentions(row.body)) yield { workflowId, row, theirs };
      }
      after = page.next;
    } while (after !== null);
  }
}

/** Adds the ids of the person's records in quarantines to `person`. */
export async function findAside(store: Store, scope: Scope, person: Person): Promise<void> {
  for await (const { held } of findTexts(store, scope, person, 'quarantined')) {
    person.ids.get(held.workflowId ?? '')?.add((JSON.parse(held.text) as { id: string }).id);
  }
}

/** Yields texts in one place that mention the person, each with its redacted text. */
export async function* findTexts(
  store: Store,
  scope: Scope,
  person: Person,
  place: TextPlace,
): AsyncGenerator<{ held: HeldText; cleaned: string }> {
  const { teamId, workflowId } = scope;
  const needles = needlesOf(person, 'texts');
  const redactor = createRedactor(person);
  let after: string | null = null;
  do {
    await ownTurn(teamId);
    const page = await store.erasure.scanTexts({ teamId, workflowId, place, needles, after });
    for (const held of page.texts) {
      const cleaned = TEXT_HOLDERS[place](held, redactor);
      if (cleaned !== held.text) yield { held, cleaned };
    }
    after = page.next;
  } while (after !== null);
}
