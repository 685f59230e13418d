/** Exports everything that is stored about a person, as a sequence of JSON texts. */
import { parseExactly } from '../std/exact-json.ts';
import type { HeldText, TextPlace } from '../store/operations/erasure/find-content.ts';
import type { Store } from '../store/store.ts';
import { openScope, refuseNoAddress } from './erase.ts';
import { findAside, findRecords, findTexts, hasDifferences, TEXT_HOLDERS } from './find-person.ts';
import { createRedactor, listsIn, type Person, type Redactor } from './person.ts';

/**
 * Exports the person's own records in full, in every stored version. Data that belongs to others is reduced to the
 * mention of the person: the id of a record, the differences of an event that concern the person's own records, the
 * matching lines of other texts. So the export contains no data of other people. Of a body that a template has written, and
 * of an unfinished decision, it names only the place.
 *
 * @returns JSON objects as text: `place`, `workflowId`, and what was found in that place
 * @throws Problem `field_invalid` if `email` is not an email address
 */
export function exportPerson(store: Store, whose: { teamId: string; email: string }): AsyncGenerator<string> {
  refuseNoAddress(whose.email);
  return find(store, whose);
}

async function* find(
  store: Store,
  { teamId, email }: { teamId: string; email: string },
): AsyncGenerator<string> {
  const { scope } = await openScope(store, { teamId, workflowId: null });
  const person: Person = { email, ids: new Map() };
  // The first pass only collects the ids of the person's records. With these ids, the second pass finds all versions of
  // the records.
  for await (const _ of findRecords(store, scope, person));
  await findAside(store, scope, person);
  for await (const { workflowId, row, theirs } of findRecords(store, scope, person)) {
    const { id, addedIn, removedIn, body } = row;
    const facts = { workflowId, id, fromVersion: addedIn, untilVersion: removedIn };
    // The record is not parsed, because parsing could change its numbers.
    yield theirs
      ? `{"place":"record",${JSON.stringify(facts).slice(1, -1)},"record":${body}}`
      : JSON.stringify({ place: 'mention', ...facts });
  }
  const redactor = createRedactor(person);
  for (const place of Object.keys(TEXT_HOLDERS) as TextPlace[]) {
    for await (const { held, cleaned } of findTexts(store, scope, person, place)) {
      const { workflowId, text } = held;
      const found =
        (place === 'event' && eventOf(text, cleaned)) ||
        (place === 'deliveryBody' && (hasDifferences(text) ? eventOf(text, cleaned) : {})) ||
        (place === 'decisionProgress' && {}) ||
        (place === 'inspectedBody' && inspectedEventOf(held, redactor));
      yield JSON.stringify({
        place,
        workflowId,
        ...(found || { text: isWhole(place) ? text : redactor.excerpts(text) }),
      });
    }
  }
}

/**
 * Whether the text in a place is exported whole. For example, every line of a response to an event about the person may
 * be about the person.
 */
function isWhole(place: TextPlace): boolean {
  return [
    'response',
    'attemptDetails',
    'state',
    'quietRecord',
    'quietSent',
    'quietNewest',
    'quarantined',
  ].includes(place);
}

/** Reduces an event that an inspector received, like other events. Returns undefined if the text is not an event. */
function inspectedEventOf({ text, workflowId }: HeldText, redactor: Redactor): object | undefined {
  try {
    const { data } = JSON.parse(text) as { data?: unknown };
    const isEvent = listsIn(data, workflowId).length > 0;
    return isEvent ? eventOf(text, redactor.event(text, workflowId)) : undefined;
  } catch {
    // Not every text is an event, because anyone may send anything to an inspector.
    return undefined;
  }
}

/** Reduces an event to what an erasure would remove: the differences of the person's own records, and errors. */
function eventOf(text: string, cleaned: string): object {
  type Told = { summary?: unknown };
  type Event = { id: string; type: string; timestamp: string; data: { error?: string; events?: Told[] } };
  const [event, rest] = [parseExactly(text) as Event, parseExactly(cleaned) as Event];
  const { id, type, timestamp, data } = event;
  const [lists, left] = [event, rest].map((one) => listsIn(one.data, null).map(({ list }) => list));
  const removed = (lists ?? []).flatMap(({ differences }, place) => {
    const kept = new Set((left?.[place]?.differences ?? []).map(idOf));
    return differences.filter((one) => !kept.has(idOf(one)));
  });
  const errors = (data.events ?? []).filter(
    (one, place) => one.summary !== rest.data.events?.[place]?.summary,
  );
  return {
    id,
    type,
    timestamp,
    ...(lists?.length === 0 ? {} : { differences: removed }),
    ...(data.error === rest.data.error ? {} : { error: data.error }),
    ...(errors.length === 0 ? {} : { events: errors }),
  };
}

function idOf(difference: unknown): unknown {
  return (difference as { id?: unknown } | null)?.id;
}
