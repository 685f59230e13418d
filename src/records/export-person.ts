/** Everything that is held about a person, one JSON text after the other. */
import { parseExactly } from '../model/record.ts';
import type { HeldText, TextPlace } from '../store/erasure-operations.ts';
import type { Store } from '../store/store.ts';
import { openScope, refuseNoAddress } from './erase.ts';
import { findRecords, findTexts, TEXT_HOLDERS } from './find-person.ts';
import { createRedactor, type Person, type Redactor } from './person.ts';

/** As often as `erase` looks again when it learnt ids. */
const LOOKS = 2;

/**
 * Records of the person whole, in every version that is kept. Of what belongs to others only that it mentions
 * the person, so that an export does not hand out other people's data: of a record its id, of an event the
 * differences of the person's own records, of other texts the lines.
 *
 * @returns JSON objects as text: `place`, `workflowId`, and what was found there
 * @throws Problem `field_invalid` unless it is an address
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
  // The first look learns the ids; the last one tells.
  for (let look = 1; look < LOOKS; look += 1) {
    for await (const _ of findRecords(store, scope, person));
  }
  for await (const { workflowId, row, theirs } of findRecords(store, scope, person)) {
    const { id, addedIn, removedIn, body } = row;
    const facts = { workflowId, id, fromVersion: addedIn, untilVersion: removedIn };
    // The record as it is stored: parsing could change its numbers.
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
        (place === 'inspectedBody' && inspectedEventOf(held, redactor));
      yield JSON.stringify({
        place,
        workflowId,
        ...(found || { text: whole(place) ? text : redactor.excerpts(text) }),
      });
    }
  }
}

/** What answers an event about the person may be about the person as a whole. */
function whole(place: TextPlace): boolean {
  return place === 'response' || place === 'attemptDetails' || place === 'state';
}

/** Of what an inspector was sent, if it is an event: that is one line, with what it tells of everybody. */
function inspectedEventOf({ text, workflowId }: HeldText, redactor: Redactor): object | undefined {
  try {
    const { data } = JSON.parse(text) as { data?: { differences?: unknown } };
    return Array.isArray(data?.differences) ? eventOf(text, redactor.event(text, workflowId)) : undefined;
  } catch {
    // What looks like one of our events may be anything.
    return undefined;
  }
}

/** What an erasure would take out of an event; of others' records that mention the person nothing. */
function eventOf(text: string, cleaned: string): object {
  type Event = {
    id: string;
    type: string;
    timestamp: string;
    data: { differences?: { id: string }[]; error?: string };
  };
  const [event, rest] = [parseExactly(text) as Event, parseExactly(cleaned) as Event];
  const kept = new Set((rest.data.differences ?? []).map((one) => one.id));
  const { id, type, timestamp, data } = event;
  return {
    id,
    type,
    timestamp,
    ...(data.differences === undefined
      ? {}
      : { differences: data.differences.filter((one) => !kept.has(one.id)) }),
    ...(data.error === rest.data.error ? {} : { error: data.error }),
  };
}
