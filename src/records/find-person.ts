/** Finds a person in everything that holds the content of records, a little at a time. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HeldText, RecordRow, TextPlace } from '../store/erasure-operations.ts';
import type { Store } from '../store/store.ts';
import { createRedactor, ERASED, isTheirs, needlesOf, type Person, type Redactor } from './person.ts';

/** Where to look: all workflows of a team, or one. */
export interface Scope {
  teamId: string;
  workflowId: string | null;
  /** Every workflow that is meant, the archived ones too. */
  workflows: readonly string[];
}

/**
 * THE register of what holds record content beside the records themselves: every place, and what becomes of a
 * text there that has to do with a person. In the order in which they are erased: what answers an event comes
 * before the event, for it is the event that tells whom the answer is about. Whoever adds a column or a file
 * that may hold the content of records adds it here, or to `forget` in `erase.ts` if it is a file.
 */
export const TEXT_HOLDERS: Readonly<Record<TextPlace, (held: HeldText, redactor: Redactor) => string>> = {
  state: ({ text }, redactor) => redactor.json(text),
  // A receiver may send back more of an event than the address.
  response: ({ text, about, workflowId }, redactor) =>
    about !== null && redactor.tells(about, workflowId) ? ERASED : redactor.lines(text),
  // What was sent are the headers of the webhook; what came back may be all that was in the event.
  attemptDetails: ({ text, about, workflowId }, redactor) =>
    redactor.json(
      about !== null && redactor.tells(about, workflowId)
        ? JSON.stringify({ ...JSON.parse(text), responseHeaders: {} })
        : text,
    ),
  attemptError: ({ text }, redactor) => redactor.lines(text),
  // It may say what the last attempt said.
  pausedReason: ({ text }, redactor) => redactor.lines(text),
  jobError: ({ text }, redactor) => redactor.lines(text),
  // One line of JSON for each line of the log: [seq, at, level, text].
  jobLog: ({ text }, redactor) =>
    text
      .split('\n')
      .map((line) => JSON.stringify((JSON.parse(line) as unknown[]).map((part) => cleanText(part, redactor))))
      .join('\n'),
  // Its counts are numbers that say nothing about anybody.
  jobProgress: ({ text }, redactor) =>
    JSON.stringify(JSON.parse(text), (_, value: unknown) => cleanText(value, redactor)),
  fields: ({ text }, redactor) => redactor.json(text),
  inspectedRequest: ({ text }, redactor) =>
    JSON.stringify(JSON.parse(text), (_, value: unknown) => cleanText(value, redactor)),
  // Mostly an event, but anybody may have sent it: nothing in it is worth more than that it is gone.
  inspectedBody: ({ text, workflowId }, redactor) =>
    redactor.mentions(text) || isEventAbout(text, workflowId, redactor) ? ERASED : text,
  event: ({ text, workflowId }, redactor) => redactor.event(text, workflowId),
};

/** What looks like one of our events may be anything. */
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
 * Records of the person, row by row, and rows of others that mention them. Learns the ids of the records; a
 * second look finds what else had those ids.
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
      // A read answers without a turn of the event loop, and there may be millions of records.
      await nextTurn();
    } while (after !== null);
  }
}

/** Texts of one place that would be others without the person, with what they would be. */
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
    const page = await store.erasure.scanTexts({ teamId, workflowId, place, needles, after });
    for (const held of page.texts) {
      const cleaned = TEXT_HOLDERS[place](held, redactor);
      if (cleaned !== held.text) yield { held, cleaned };
    }
    after = page.next;
    await nextTurn();
  } while (after !== null);
}
