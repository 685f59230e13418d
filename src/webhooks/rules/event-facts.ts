/** What decisions need again and again: parsed events, compiled filters, and bodies. */

import { compile, type Expression, ExpressionMistake } from '../../model/expression.ts';
import { isForPeople, type Rule } from '../../model/rule.ts';
import type { Difference } from '../../model/same-json.ts';
import type { Selection } from '../../model/selection.ts';
import { type ForPeople, shapedBody } from '../../model/shape.ts';
import { toIso } from '../../std/clock.ts';
import { parseExactly } from '../../std/exact-json.ts';
import { remembered } from '../../std/remembered.ts';
import type { JudgedEvent } from '../../store/operations/rules/decisions.ts';
import type { StoreReader } from '../../store/store.ts';
import type { EventNames, Marks } from './examination.ts';

/** What an event says. */
export interface EventFacts {
  names: EventNames;
  /** The version that the event reports, and the version before it; null if the event reports no version's changes. */
  version: number | null;
  previousVersion: number | null;
  /** Number of records that the version added, changed or removed. */
  total: number;
  /** The first of them, as the event lists them. */
  differences: Difference[];
}

const MAX_EVENTS = 64;
const MAX_EXPRESSIONS = 1_000;
const facts = new Map<string, EventFacts>();
const expressions = new Map<string, Expression | ExpressionMistake>();

/** Parses the body of an event. */
export function factsOf(event: JudgedEvent): EventFacts {
  return remembered(facts, event.body, MAX_EVENTS, () => readFacts(event));
}

function readFacts({ eventId, type, workflowId, jobId, createdAt, sequence, body }: JudgedEvent): EventFacts {
  const names: EventNames = {
    event: { id: eventId, type, workflowId, jobId, timestamp: toIso(createdAt), sequence },
    data: JSON.parse(body).data ?? null,
  };
  const none = { names, version: null, previousVersion: null, total: 0, differences: [] };
  if (type !== 'workflow_data_change') return none;
  const { data } = parseExactly(body) as { data: PublishedData };
  const { version, previousVersion, records, differences = [] } = data;
  const total = records.added + records.changed + records.removed;
  return { names, version, previousVersion, total, differences };
}

interface PublishedData {
  version: number;
  previousVersion: number;
  records: { added: number; changed: number; removed: number };
  differences?: Difference[];
}

/**
 * Compiles a filter; null if there is none. A filter that was valid when it was saved may be invalid in another version
 * of this program.
 */
export function compiled(filter: string | null): Expression | ExpressionMistake | null {
  if (filter === null) return null;
  return remembered(expressions, filter, MAX_EXPRESSIONS, () => {
    try {
      return compile(filter);
    } catch (error) {
      if (error instanceof ExpressionMistake) return error;
      throw error;
    }
  });
}

/**
 * Reads what only messages for people contain; undefined for other formats, which cost nothing.
 *
 * @param about.jobId the job of the event; its log is read if it has failed
 */
export async function readForPeople(
  reader: { decisions: Pick<StoreReader['decisions'], 'forPeople'> },
  rule: Rule,
  about: { teamId: string; webhookId: string; type: string; jobId: string | null },
): Promise<ForPeople | undefined> {
  if (!isForPeople(rule.format)) return undefined;
  const { teamId, webhookId, type, jobId } = about;
  return reader.decisions.forPeople({ teamId, webhookId, jobId: type === 'workflow_failed' ? jobId : null });
}

/** The number of an evaluation that is not of a difference, but of the template. */
const SHAPING = -1;

/** Makes the body of a message. A template that takes too long is replaced by the standard body. */
export function shape(
  rule: Rule,
  event: { body: string },
  selection: Selection | null,
  { publicUrl, marks, people }: { publicUrl: string; marks: Marks; people?: ForPeople | undefined },
  messageId?: string,
): { body: string; mistake: string | null } {
  const { body } = event;
  // A message for people evaluates nothing, and must not be replaced by a body that only programs can read.
  if (isForPeople(rule.format)) {
    marks.pause();
    return shapedBody(rule, { body, publicUrl, ...people }, selection, messageId);
  }
  if (marks.isSlow(SHAPING)) {
    const standard = { ...rule, format: 'standard' as const, template: null };
    const made = shapedBody(standard, { body, publicUrl }, selection, messageId);
    return { ...made, mistake: 'The template takes too long: its evaluation was ended after 1 s' };
  }
  marks.begin(SHAPING);
  return shapedBody(rule, { body, publicUrl }, selection, messageId);
}
