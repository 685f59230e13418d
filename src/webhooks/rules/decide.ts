/** Decides what a rule sends about an event: one step at a time, as the store writes it. */

import { ExpressionMistake } from '../../model/expression.ts';
import { afterCooldown } from '../../model/quiet.ts';
import type { Rule } from '../../model/rule.ts';
import { effectiveFirstVersion } from '../../model/rule-fields.ts';
import type { Selection } from '../../model/selection.ts';
import type { ForPeople } from '../../model/shape.ts';
import type { FilterMistake } from '../../model/webhook.ts';
import { countWords, grouped } from '../../std/amounts.ts';
import { newId } from '../../std/id.ts';
import type {
  EndedCooldowns,
  EndedDigest,
  JudgedEvent,
  PendingDecision,
  QuietRow,
} from '../../store/operations/rules/decisions.ts';
import type { DecisionStep } from '../../store/operations/rules/steps.ts';
import type { StoreReader } from '../../store/store.ts';
import { ComparedRecord, type DifferencePages, listedRecords, type Published } from './compared-records.ts';
import { digestData } from './digest-data.ts';
import { compiled, type EventFacts, factsOf, readForPeople, shape } from './event-facts.ts';
import {
  eventMatches,
  examineDifference,
  type Judge,
  type Listing,
  list,
  listingOf,
  MAX_SLOW,
  type Marks,
  matches,
  noProgress,
  type Progress,
  selectionOf,
} from './examination.ts';
import { DigestInMaking } from './gathering.ts';

/**
 * The bounds of one step of a decision. Each step is written, so too many small ones would delay other writes; the bound
 * of characters keeps the webhooks of a version on pages that are still in memory.
 */
const STEP_DIFFERENCES = 20_000;
const STEP_CHARACTERS = 2_097_152;
const STEP_QUIET = 1_000;
const STEP_MS = 50;
/** Maximum number of cooldowns whose end goes into one message. */
const ENDED_AT_ONCE = 2_000;

/** What the decisions of a turn share. */
export interface Deciding {
  reader: Pick<StoreReader, 'decisions'>;
  pages: DifferencePages;
  teamId: string;
  /** The time of the store, in epoch milliseconds. */
  now: number;
  publicUrl: string;
  /** Called before the evaluations of a decision, or of ended cooldowns, whose `sequence` is null. */
  watch(place: Place): Marks;
}

/** Names a decision, or the ended cooldowns of a webhook. */
export interface Place {
  webhookId: string;
  /** The event; null while cooldowns end. */
  sequence: number | null;
  rewrites: number;
}

/** One step, and what it means for the log and the metrics. */
export interface Decided {
  step: DecisionStep;
  /** Null while the decision is pending, and if ended cooldowns caused no message. */
  outcome: 'sent' | 'gathered' | 'filtered' | 'digest' | null;
  eventId: string | null;
  /** Number of evaluations in this step. */
  evaluated: number;
}

/** Whether the webhook of a decision may have cooldowns or a digest that end. */
export function mayEnd({ hasQuiet, rule }: Pick<PendingDecision, 'hasQuiet' | 'rule'>): boolean {
  return hasQuiet || rule.cooldownMs !== null || rule.digest !== null;
}

/** Takes one step of a decision. The first step of a decision may instead end cooldowns that are over by then. */
export async function decide(decision: PendingDecision, deciding: Deciding): Promise<Decided> {
  const { webhookId, workflowId, sequence, turn, rewrites, revision, rule } = decision;
  const { reader, teamId, publicUrl } = deciding;
  if (decision.progress === null && mayEnd(decision)) {
    const until = decision.createdAt;
    const ended = await endOf({ webhookId, until }, deciding);
    if (ended !== undefined) return instead(decision, ended);
  }
  const stored = decision.progress as Progress | null;
  const progress = stored?.rewrites === rewrites ? structuredClone(stored) : noProgress(rewrites);
  // The event of a digest, and a test, are sent even if the filter does not match.
  const isOwn = decision.isTest || decision.type === 'webhook_digest';
  const digest = isOwn
    ? null
    : await openDigest(decision, { event: decision, progress, mayRestart: true }, deciding);
  const before = progress.examined;
  const marks = deciding.watch({ webhookId, sequence, rewrites });
  const found: Found = isOwn
    ? { isDone: true, matches: true, selection: null, reason: null, quiet: new Map() }
    : await examine({ ...decision, event: decision, progress, digest }, { ...deciding, marks });
  if (found.mustSendDigest) return instead(decision, await sendDigest(decision, deciding));
  const held = [...found.quiet.values()].map((one) => ({
    ...one,
    workflowId: workflowId ?? '',
    sequence,
    revision,
    matches: null,
  }));
  const isWhole = found.isDone && found.matches && progress.examined === 0;
  if (digest !== null && isWhole) digest.event(decision, factsOf(decision).names.data);
  const { digestUntil, ...gathered } = digest?.changes() ?? { set: [], remove: [] };
  const quiet = { set: [...held, ...gathered.set], remove: gathered.remove };
  // An event without differences is evaluated as a whole.
  const evaluated = found.isDone && progress.examined === 0 ? 1 : progress.examined - before;
  const step = {
    ...{ webhookId, workflowId, turn, rewrites, sequence, quiet },
    ...(digestUntil === undefined ? {} : { digestUntil }),
  };
  const { eventId, body } = decision;
  if (!found.isDone) return { step: { ...step, progress }, outcome: null, eventId, evaluated };
  const isSent = found.matches && digest === null;
  const people = isSent ? await readForPeople(reader, rule, { ...decision, teamId }) : undefined;
  const shaped = isSent ? shape(rule, decision, found.selection, { publicUrl, marks, people }) : undefined;
  const mistake = mistakeOf(progress, shaped?.mistake ?? null, { at: deciding.now, eventId });
  const [matched, examined] = progress.examined > 0 ? [progress.matched, progress.examined] : [null, null];
  const outcome =
    shaped === undefined
      ? ({ state: found.matches ? 'gathered' : 'filtered' } as const)
      : ({ state: 'sent', body: shaped.body === body ? null : shaped.body, messageId: null } as const);
  const reason = outcome.state === 'gathered' ? gatheredReason(progress, found.reason) : found.reason;
  const made = { ...step, mistake, outcome, matched, examined, reason };
  return { step: made, outcome: outcome.state, eventId, evaluated };
}

/** The digest to which what matches of an event is added; null if the rule has none. */
async function openDigest(
  { webhookId, rule, revision }: { webhookId: string; rule: Rule; revision: number },
  given: { event: JudgedEvent; progress: { counted: number }; mayRestart: boolean },
  { reader, teamId }: Deciding,
): Promise<DigestInMaking | null> {
  if (rule.digest === null) return null;
  const workflowId = given.event.workflowId ?? '';
  const open = await reader.decisions.digest({ teamId, webhookId, workflowId });
  const event = { ...given.event, revision };
  return new DigestInMaking(rule.digest, open, { ...given, event, facts: factsOf(given.event) });
}

/** Says that what matches is sent later. */
export function gatheredReason({ matched, examined }: Progress, reason: string | null): string {
  const what =
    examined === 0
      ? 'Gathered'
      : `Gathered: ${grouped(matched)} of ${countWords(examined, 'difference')} ${matched === 1 ? 'matches' : 'match'}`;
  return reason === null ? what : `${what}. ${reason}`;
}

/** The error that the webhook shows: of the filter or, if that has none, of the template. */
function mistakeOf(
  { mistake }: Progress,
  ofTemplate: string | null,
  seen: { at: number; eventId: string },
): FilterMistake | null {
  if (mistake !== null) return { ...seen, ...mistake };
  return ofTemplate === null ? null : { ...seen, recordId: null, message: ofTemplate };
}

/** What a rule says about an event. */
export interface Found {
  isDone: boolean;
  matches: boolean;
  /** Null if the whole event is sent. */
  selection: Selection | null;
  reason: string | null;
  /** New and changed cooldowns, by record. */
  quiet: Map<string, QuietOf>;
  /** Whether a digest of an earlier rule must be sent before, because it has gathered the same record. */
  mustSendDigest?: true;
}
type QuietOf = Pick<QuietRow, 'id' | 'until' | 'sent' | 'newest'>;

/** What an examination reads with. `decisions` is not used if the quiet records are known. */
export interface Tools {
  reader: { decisions: Pick<StoreReader['decisions'], 'quiet'> };
  pages: DifferencePages;
  teamId: string;
  marks: Marks;
}

interface Asked {
  event: JudgedEvent;
  rule: Rule;
  rewrites: number;
  /** Changed by the call. */
  progress: Progress;
  /** The webhook whose quiet records count; without one, those of `known`. */
  webhookId?: string;
  hasQuiet?: boolean;
  known?: ReadonlyMap<string, QuietRow>;
  /** The digest that gathers what matches; null or missing if it is sent immediately. */
  digest?: DigestInMaking | null;
  /** Default: as messages of the rule list differences. */
  lists?: Listing;
}

/** Examines an event, or as many of its differences as fit into a step. */
export async function examine(asked: Asked, tools: Tools): Promise<Found> {
  const { event, rule, rewrites, progress, digest = null } = asked;
  const done = { isDone: true, selection: null, quiet: new Map<string, QuietOf>() };
  const expression = compiled(rule.filter);
  if (expression instanceof ExpressionMistake) {
    progress.mistake = { recordId: null, message: expression.message };
    return { ...done, matches: false, reason: 'The filter is invalid' };
  }
  const facts = factsOf(event);
  const { version } = facts;
  const published: Published | undefined =
    version === null || event.workflowId === null
      ? undefined
      : { teamId: tools.teamId, workflowId: event.workflowId, version, rewrites };
  if (published !== undefined && facts.previousVersion === 0 && effectiveFirstVersion(rule) === 'skip') {
    return { ...done, matches: false, reason: 'The first version is skipped' };
  }
  const readsRecord = expression?.readsRecord === true;
  const judge: Judge = {
    marks: tools.marks,
    names: facts.names,
    expression,
    cooldownMs: readsRecord ? rule.cooldownMs : null,
    at: event.createdAt,
    lists: asked.lists ?? listingOf(rule),
    isOwn: (quiet) => {
      const row = quiet as QuietRow;
      const isBegun = rule.cooldownMs !== null && row.until === event.createdAt + rule.cooldownMs;
      return isBegun && row.sequence === event.sequence && row.sent === row.newest;
    },
    digest,
  };
  if (published === undefined || !readsRecord) {
    if (!eventMatches(progress, judge))
      return { ...done, matches: false, reason: 'The filter does not match' };
    const readsAll = judge.lists !== 'fields' || digest !== null;
    if (published === undefined || !readsAll) return { ...done, matches: true, reason: null };
  }
  const differing = { published, facts, judge: readsRecord ? judge : { ...judge, expression: null } };
  return examineDifferences(asked, differing, tools);
}

async function examineDifferences(
  asked: Asked,
  differing: { published: Published; facts: EventFacts; judge: Judge },
  tools: Tools,
): Promise<Found> {
  const { progress, webhookId } = asked;
  const { published, facts, judge } = differing;
  const quiet = new Map<string, QuietOf>();
  const deadline = performance.now() + STEP_MS;
  const last = progress.examined + STEP_DIFFERENCES;
  let characters = 0;
  const mayHaveQuiet = asked.hasQuiet === true || judge.cooldownMs !== null || judge.digest !== null;
  const hasQuiet = mayHaveQuiet && (judge.expression !== null || judge.digest !== null);
  const quietOf = async (records: readonly ComparedRecord[]): Promise<ReadonlyMap<string, QuietRow>> => {
    if (asked.known !== undefined) return asked.known;
    if (webhookId === undefined || !hasQuiet || records.length === 0) return new Map();
    const { teamId, workflowId } = published;
    const ids = records.map(({ id }) => id);
    const rows = await tools.reader.decisions.quiet({ teamId, webhookId, workflowId, ids });
    return new Map(rows.map((row) => [row.id, row]));
  };
  let isGone = false;
  for (let isDone = false; !isDone; ) {
    tools.marks.pause();
    const page = await tools.pages.read(published, progress.after);
    isGone = page === undefined;
    const records =
      page?.records.slice(progress.offset) ?? listedRecords(facts.differences).slice(progress.examined);
    const known = await quietOf(records);
    for (const record of records) {
      const changed = quiet.size + (judge.digest?.size ?? 0);
      const isFull = progress.examined >= last || characters >= STEP_CHARACTERS || changed >= STEP_QUIET;
      if (!isGone && (isFull || performance.now() >= deadline)) {
        return { isDone: false, matches: false, selection: null, reason: null, quiet };
      }
      const row = known.get(record.id);
      if (judge.digest === null && row != null && row.matches !== null) {
        return { isDone: false, matches: false, selection: null, reason: null, quiet, mustSendDigest: true };
      }
      const cooldown = examineDifference(progress, record, row, judge);
      if (cooldown !== undefined) quiet.set(record.id, cooldown);
      progress.offset += 1;
      characters += (record.before?.length ?? 0) + (record.after?.length ?? 0);
    }
    // Without a filter, only the records that the message lists are read.
    const isFull = judge.expression === null && judge.digest === null && progress.truncated;
    if (isFull) Object.assign(progress, { matched: facts.total, examined: facts.total });
    isDone = page === undefined || page.next === null || isFull;
    if (page !== undefined && !isDone) Object.assign(progress, { after: page.next, offset: 0 });
  }
  const { matched } = progress;
  return {
    isDone: true,
    matches: matched > 0,
    selection: matched > 0 && judge.digest === null ? selectionOf(progress) : null,
    reason: reasonOf(progress, isGone ? facts.total : undefined),
    quiet,
  };
}

/** Why nothing is sent, or what was not examined; null if there is nothing to say. */
function reasonOf({ matched, held, examined, slow }: Progress, total: number | undefined): string | null {
  const sentences = [
    ...(matched > 0
      ? []
      : [`0 of ${countWords(examined, 'difference')} ${examined === 1 ? 'matches' : 'match'}`]),
    ...(matched > 0 || held === 0
      ? []
      : [`${countWords(held, 'record')} ${held === 1 ? 'is' : 'are'} in a cooldown`]),
    ...(slow < MAX_SLOW ? [] : ['The filter takes too long, so the other differences count as not matching']),
    ...(total === undefined || examined >= total
      ? []
      : [
          `Only the first ${grouped(examined)} of ${countWords(total, 'difference')} were examined, because the version was deleted`,
        ]),
  ];
  return sentences.length === 0 ? null : sentences.join('. ');
}

/**
 * A step that a decision takes before its own. It was read later than the decision, and must not count if another node has
 * decided in between: what the step would end may then belong to later events.
 */
function instead({ turn }: PendingDecision, ended: Decided): Decided {
  return { ...ended, step: { ...ended.step, turn } };
}

/** Sends the digest of a webhook that is open, whenever it ends. */
async function sendDigest(decision: PendingDecision, deciding: Deciding): Promise<Decided> {
  const { teamId, reader } = deciding;
  const ended = await reader.decisions.endedDigest({ teamId, webhookId: decision.webhookId });
  if (ended === undefined) throw new Error(`The digest of ${decision.webhookId} was sent meanwhile`);
  return digestStep(decision.webhookId, ended);
}

/** All rows of a digest become one event. */
function digestStep(webhookId: string, ended: EndedDigest): Decided {
  const { workflowId, revision, turn, rewrites, rows } = ended;
  const digest = { revision, workflowId, data: digestData(webhookId, ended) };
  const step = { webhookId, workflowId: null, turn, rewrites, sequence: 0, digest };
  return { step, outcome: 'digest', eventId: null, evaluated: rows.length };
}

/** Ends the digest of a webhook, or cooldowns of one workflow, if they are over; undefined if none is. */
export async function endOf(
  { webhookId, until }: { webhookId: string; until: number },
  deciding: Deciding,
): Promise<Decided | undefined> {
  const { teamId } = deciding;
  const ended = await deciding.reader.decisions.ended({ teamId, webhookId, until, limit: ENDED_AT_ONCE });
  if (ended === undefined) return undefined;
  if (ended.kind === 'digest') return digestStep(webhookId, ended);
  const { workflowId, turn, rewrites, event } = ended;
  const marks = deciding.watch({ webhookId, sequence: null, rewrites: 0 });
  const about = { teamId, webhookId, type: event?.type ?? '', jobId: null };
  const people = await readForPeople(deciding.reader, ended.rule, about);
  const progress = { counted: 0 };
  // If the rule that last saw the records has a digest, that gathers them when their cooldown ends.
  const at = ended.rows[0]?.until ?? until;
  const given = event && { event: { ...event, createdAt: at }, progress, mayRestart: false };
  const digest = given && (await openDigest({ webhookId, ...ended }, given, deciding));
  // Cooldowns that end after this digest belong into the next one.
  const rows = ended.rows.filter((row) => digest == null || row.until < digest.until || row.until === at);
  const { message, mistake, quiet } = endCooldowns({ ...ended, rows }, until, {
    ...deciding,
    marks,
    people,
    digest,
  });
  const { digestUntil, ...gathered } = digest?.changes() ?? { set: [], remove: [] };
  const kept = new Set([...quiet, ...gathered.set].map(({ id }) => id));
  const remove = rows.filter(({ id }) => !kept.has(id)).map(({ id }) => ({ workflowId, id }));
  const sequence = event?.sequence ?? 0;
  return {
    step: {
      webhookId,
      workflowId,
      turn,
      rewrites,
      sequence,
      quiet: { set: [...quiet, ...gathered.set], remove },
      mistake,
      sent: message,
      ...(digestUntil === undefined ? {} : { digestUntil }),
    },
    outcome: message === null ? null : 'sent',
    eventId: event?.eventId ?? null,
    evaluated: rows.length,
  };
}

/**
 * The message about records whose cooldowns are over (null: there is nothing to send), and their next cooldowns. With a
 * digest, they are gathered instead.
 */
export function endCooldowns(
  { rule, event, rows }: Pick<EndedCooldowns, 'rule' | 'event' | 'rows'>,
  until: number,
  deciding: Pick<Deciding, 'now' | 'publicUrl'> & {
    marks: Marks;
    people?: ForPeople | undefined;
    digest?: DigestInMaking | null;
  },
): {
  message: { body: string; messageId: string } | null;
  mistake: FilterMistake | null;
  quiet: QuietRow[];
  progress: Progress;
} {
  const { digest = null } = deciding;
  const progress = noProgress(0);
  const quiet: QuietRow[] = [];
  const expression = compiled(rule.filter);
  // The event is gone if events are kept for a shorter time than the cooldown. Nothing can be sent about it then.
  const hasNone = expression === null && digest === null;
  if (event === null || hasNone || expression instanceof ExpressionMistake) {
    return { message: null, mistake: null, quiet, progress };
  }
  const { names } = factsOf(event);
  for (const row of rows) {
    const compared = new ComparedRecord({ id: row.id, before: row.sent, after: row.newest });
    const end = afterCooldown(row, {
      now: until,
      cooldownMs: rule.cooldownMs,
      matches: () => matches(progress, compared, { expression, names, marks: deciding.marks }),
    });
    progress.examined += 1;
    if (end.change !== undefined && digest !== null) digest.difference(compared, undefined, true);
    else if (end.change !== undefined) list(progress, compared, listingOf(rule));
    if (end.quiet !== undefined) quiet.push({ ...row, ...end.quiet });
  }
  const seen = { at: deciding.now, eventId: event.eventId };
  if (progress.matched === 0)
    return { message: null, mistake: mistakeOf(progress, null, seen), quiet, progress };
  const messageId = newId('evt', deciding.now);
  const { body, mistake } = shape(rule, event, selectionOf(progress), deciding, messageId);
  return { message: { body, messageId }, mistake: mistakeOf(progress, mistake, seen), quiet, progress };
}
