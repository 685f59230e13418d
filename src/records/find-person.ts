/** Finds a person in everything that holds the content of records, page by page. */

import { ownTurn } from '../std/fair-share.ts';
import type { HeldText, RecordRow, TextPlace } from '../store/operations/find-content.ts';
import type { Store } from '../store/store.ts';
import { createRedactor, ERASED, isTheirs, needlesOf, type Person, type Redactor } from './person.ts';

/** Where to search: one workflow, or all workflows of a team. */
export interface Scope {
  teamId: string;
  workflowId: string | null;
  /** The ids of all workflows in scope, including archived ones. */
  workflows: readonly string[];
}

/**
 * THE register of every place besides the records that may hold content of records, with a function that removes a
 * person from a text there. The order is that of the erasure: responses come before the events that they answer,
 * because the event says whom a response is about. If you add a column that may hold content of records, add it here; if
 * you add a file, remove it in `forget` of `erase.ts`.
 */
export const TEXT_HOLDERS: Readonly<Record<TextPlace, (held: HeldText, redactor: Redactor) => string>> = {
  state: ({ text }, redactor) => redactor.json(text),
  // A receiver may echo more of an event than the address.
  response: ({ text, about, workflowId }, redactor) =>
    about !== null && redactor.tells(about, workflowId) ? ERASED : redactor.lines(text),
  // The request headers are the webhook's own; the response headers may echo anything of the event.
  attemptDetails: ({ text, about, workflowId }, redactor) =>
    redactor.json(
      about !== null && redactor.tells(about, workflowId)
        ? JSON.stringify({ ...JSON.parse(text), responseHeaders: {} })
        : text,
    ),
  attemptError: ({ text }, redactor) => redactor.lines(text),
  // It may quote the error of the last attempt.
  pausedReason: ({ text }, redactor) => redactor.lines(text),
  jobError: ({ text }, redactor) => redactor.lines(text),
  // NDJSON, one array for each line of the log: [seq, at, level, text].
  jobLog: ({ text }, redactor) =>
    text
      .split('\n')
      .map((line) => JSON.stringify((JSON.parse(line) as unknown[]).map((part) => cleanText(part, redactor))))
      .join('\n'),
  // Numbers are counts, and stay.
  jobProgress: ({ text }, redactor) =>
    JSON.stringify(JSON.parse(text), (_, value: unknown) => cleanText(value, redactor)),
  fields: ({ text }, redactor) => redactor.json(text),
  inspectedRequest: ({ text }, redactor) =>
    JSON.stringify(JSON.parse(text), (_, value: unknown) => cleanText(value, redactor)),
  // Usually an event, but anybody may have sent it: it is replaced as a whole.
  inspectedBody: ({ text, workflowId }, redactor) =>
    redactor.mentions(text) || isEventAbout(text, workflowId, redactor) ? ERASED : text,
  event: ({ text, workflowId }, redactor) => redactor.event(text, workflowId),
};

/** Anybody may have sent the text, so it may have any form. */
function isEventAbout(text: string, workflowId: string | null, redactor: Redactor): boolean {
  try {
    return redactor.tells(text, workflowId);
  } catch {
    return false;
  }
}

function cleanText(value: unknown, redactor: Redactor): unknown {
  return typeof value === 'string' ? redactor.lines(value) : value;
}

/**
 * Yields the rows of the person's records, and rows of others that mention them. Adds the ids of the person's records to
 * `person`, so that a second pass also finds other rows with those ids.
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
      // Reads of SQLite finish within one turn of the event loop, and there may be millions of records.
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

/** Yields the texts of one place that contain the person, each with its text after an erasure. */
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
