/** The body that a webhook with a rule receives. */

import { parseExactly } from '../std/exact-json.ts';
import { EvaluationMistake, ExpressionMistake } from './expression.ts';
import { messageBody } from './messages/message.ts';
import type { Sender } from './messages/notice.ts';
import { noticeOf } from './messages/notice-of.ts';
import { isForPeople, type Rule, timeZoneOf } from './rule.ts';
import { type Difference, MAX_DIFFERENCES_BYTES } from './same-json.ts';
import type { SelectedDifference, Selection } from './selection.ts';
import { compileTemplate, type TemplateNames } from './template.ts';

export interface ShapedBody {
  body: string;
  /** A sentence if the template could not be evaluated. The body then has the format `standard`. */
  mistake: string | null;
}

/** What only messages for people contain: the webhook that sends them, and the last log lines of a failed job. */
export interface ForPeople {
  webhook: Sender;
  log: readonly string[];
}

/**
 * Returns the text that is signed and sent.
 *
 * @param event its stored body, the URL under which the service can be reached, and for people what else they read
 * @param selection null if the filter reads no record, or the event has no differences
 * @param messageId replaces the id of the event: for the message that is sent when cooldowns have ended
 */
export function shapedBody(
  rule: Rule,
  event: { body: string; publicUrl: string } & Partial<ForPeople>,
  selection: Selection | null,
  messageId?: string,
): ShapedBody {
  if (rule.format === 'standard' && selection === null && messageId === undefined) {
    return { body: event.body, mistake: null };
  }
  const standard = standardBody(rule, event.body, selection, messageId);
  if (rule.format === 'cloudevents') {
    return { body: JSON.stringify(cloudEvent(standard, event.publicUrl)), mistake: null };
  }
  if (isForPeople(rule.format)) {
    const { publicUrl, webhook = { id: '', name: null }, log = [] } = event;
    const body = JSON.stringify(standard);
    const notice = noticeOf({ body, selection, publicUrl, timeZone: timeZoneOf(rule), webhook, log });
    return { body: messageBody(rule.format, notice), mistake: null };
  }
  if (rule.format === 'template') {
    try {
      return { body: templateOf(rule.template).body(namesOf(standard, selection)), mistake: null };
    } catch (error) {
      // A template that was valid when it was saved may be invalid in another version of this program.
      const isOfRule = error instanceof EvaluationMistake || error instanceof ExpressionMistake;
      if (!isOfRule) throw error;
      return { body: JSON.stringify(standard), mistake: error.message };
    }
  }
  return { body: JSON.stringify(standard), mistake: null };
}

type Json = Record<string, unknown>;

/** The stored body with only the differences that match. */
function standardBody(rule: Rule, body: string, selection: Selection | null, messageId?: string): Json {
  const parsed = parseExactly(body) as Json;
  const data: Json = {};
  for (const [key, value] of Object.entries(parsed.data as Json)) {
    data[key] = value;
    if (key === 'records' && selection !== null) data.matched = selection.matched;
  }
  if (selection !== null) {
    const differences = selection.differences.map(({ type, id, fields }) => ({ type, id, fields }));
    // A selection for a template or for people holds at least one record, however large that is.
    const isLong = rule.format === 'template' || isForPeople(rule.format);
    const listed = isLong ? fitting(differences) : differences;
    data.differences = listed;
    data.truncated = selection.truncated || listed.length < differences.length;
    const { changesUrl } = data;
    if (typeof changesUrl === 'string' && rule.filter !== null) {
      data.changesUrl = `${changesUrl}&filter=${encodeURIComponent(rule.filter)}`;
    }
  }
  if (messageId === undefined) return { ...parsed, data };
  return { ...parsed, id: messageId, data: { ...data, cooldownEnded: true } };
}

/** The first differences that fit into the body of an event. */
function fitting(differences: readonly Difference[]): readonly Difference[] {
  let bytes = 0;
  const first = differences.findIndex((one) => {
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    return bytes > MAX_DIFFERENCES_BYTES;
  });
  return first === -1 ? differences : differences.slice(0, first);
}

/**
 * The structured mode of CloudEvents 1.0.2. Names of extension attributes consist of lowercase letters and digits;
 * `sequence` has leading zeros, because receivers compare it as text. `mediaTypeOf` recognizes the first field.
 */
function cloudEvent(standard: Json, publicUrl: string): Json {
  const { id, type, timestamp, workflowId, jobId, teamId, sequence, data } = standard;
  const path = typeof workflowId === 'string' ? `/v1/workflows/${encodeURIComponent(workflowId)}` : '/v1';
  return {
    specversion: '1.0',
    id,
    source: `${publicUrl}${path}`,
    type: `flowhook.${type}`,
    ...(jobId === undefined ? {} : { subject: jobId }),
    time: timestamp,
    datacontenttype: 'application/json',
    teamid: teamId,
    ...(workflowId === undefined ? {} : { workflowid: workflowId }),
    ...(jobId === undefined ? {} : { jobid: jobId }),
    sequence: String(sequence).padStart(16, '0'),
    data,
  };
}

/** The template that was used last: one webhook sends many events. */
let last: { text: string; template: ReturnType<typeof compileTemplate> } | undefined;

function templateOf(value: unknown): ReturnType<typeof compileTemplate> {
  const text = JSON.stringify(value);
  if (last?.text !== text) last = { text, template: compileTemplate(value) };
  return last.template;
}

/** The names of a template: those of a filter for the first difference, and all differences. */
function namesOf(standard: Json, selection: Selection | null): TemplateNames {
  const data = standard.data as Json;
  const sent = selection?.differences ?? ((data.differences ?? []) as SelectedDifference[]);
  const differences = sent.map(({ type, id, fields, record, previous }) => ({
    change: type,
    id,
    record: record ?? sideOf(type === 'removed' ? [] : fields, id, 'value'),
    previous: previous ?? sideOf(type === 'added' ? [] : fields, id, 'previousValue'),
    changed: fields.map(({ key }) => key),
    fields,
  }));
  const [first] = differences;
  const { id, type, workflowId = null, jobId = null, timestamp, sequence } = standard;
  return {
    event: { id, type, workflowId, jobId, timestamp, sequence } as TemplateNames['event'],
    data,
    change: first?.change ?? null,
    id: first?.id ?? null,
    record: first?.record ?? null,
    previous: first?.previous ?? null,
    changed: first?.changed ?? [],
    differences,
  };
}

/** The fields that a difference lists of a record before or after the change; null if the record did not exist. */
function sideOf(fields: Difference['fields'], id: string, side: 'value' | 'previousValue'): Json | null {
  const known = fields.filter((field) => Object.hasOwn(field, side)).map((field) => [field.key, field[side]]);
  return known.length === 0 ? null : Object.fromEntries([['id', id], ...known]);
}
