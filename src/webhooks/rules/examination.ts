/** Evaluates a rule for one event, in steps that are short enough to be repeated after a crash. */

import { type Expression, type Names, verdict } from '../../model/expression.ts';
import { FEED_LIMIT } from '../../model/messages/feed.ts';
import { MAX_ROWS } from '../../model/messages/notice.ts';
import { shortened } from '../../model/messages/notice-row.ts';
import { hear, type Quiet } from '../../model/quiet.ts';
import { isForPeople, type Rule } from '../../model/rule.ts';
import { MAX_DIFFERENCES_BYTES } from '../../model/same-json.ts';
import type { SelectedDifference, Selection } from '../../model/selection.ts';
import { parseExactly } from '../../std/exact-json.ts';
import type { ChangesCursor } from '../../store/operations/history/changes.ts';
import type { QuietRow } from '../../store/operations/rules/decisions.ts';
import { type ComparedRecord, NO_RECORD } from './compared-records.ts';
import type { DigestInMaking } from './gathering.ts';

/** Maximum number of differences that a message lists. */
const MAX_LISTED = 100;
/** After this many differences that took too long, the rest of an event counts as not matching. */
export const MAX_SLOW = 10;
/** The sentence about a difference whose evaluation was ended. */
export const TOO_SLOW = 'The filter takes too long: its evaluation was ended after 1 s';

/** How far the examination of an event has come: JSON, which is stored after each step. */
export interface Progress {
  /** The value of `Published.rewrites` for which this holds. */
  rewrites: number;
  /** Where the current page begins, and how many of its differences were examined. */
  after: ChangesCursor | null;
  offset: number;
  /** Number of differences that match and are not quiet, that are quiet, and that were examined. */
  matched: number;
  held: number;
  examined: number;
  /** Number of matches that a digest has no row for. */
  counted: number;
  /** The first matching differences as JSON texts, which keep the digits of numbers. */
  listed: string[];
  listedBytes: number;
  truncated: boolean;
  slow: number;
  /** The first difference for which the filter could not be evaluated. */
  mistake: { recordId: string | null; message: string } | null;
}

export function noProgress(rewrites: number): Progress {
  return {
    rewrites,
    after: null,
    offset: 0,
    matched: 0,
    held: 0,
    examined: 0,
    counted: 0,
    listed: [],
    listedBytes: 0,
    truncated: false,
    slow: 0,
    mistake: null,
  };
}

/** Names of the event, the same for all of its differences. */
export type EventNames = Pick<Names, 'event' | 'data'>;

/** Watches over the evaluations of one decision, which are numbered. */
export interface Marks {
  /** Called before each evaluation, with the number of differences of the event that were examined before. */
  begin(examined: number): void;
  /** Called when no evaluation is in progress, because something is read. */
  pause(): void;
  /** Whether the evaluation with this number was ended before, because it took too long. */
  isSlow(examined: number): boolean;
}

/** For evaluations that nothing watches over. */
export const UNWATCHED: Marks = { begin: () => {}, pause: () => {}, isSlow: () => false };

/** The rule of an event while its differences are examined. */
export interface Judge {
  marks: Marks;
  names: EventNames;
  /** Null: every difference matches. */
  expression: Expression | null;
  cooldownMs: number | null;
  /** The time of the event. */
  at: number;
  /** How differences are listed. */
  lists: Listing;
  /** Whether a cooldown was started by this event, before its examination was started again. */
  isOwn(quiet: Quiet): boolean;
  /** The digest that gathers what matches; null if it is sent immediately. */
  digest: DigestInMaking | null;
}

/** Examines one difference. Changes `progress`, and returns the record's new cooldown, if it changed. */
export function examineDifference(
  progress: Progress,
  compared: ComparedRecord,
  known: QuietRow | undefined,
  judge: Judge,
): Quiet | undefined {
  const { id, before, after } = compared;
  const quiet = known === undefined || judge.isOwn(known) ? undefined : known;
  const { at, cooldownMs, digest } = judge;
  // A cooldown of an earlier rule still holds its record.
  if (digest !== null && (known == null || known.matches !== null || at >= known.until)) {
    const isMatch = matches(progress, compared, judge);
    progress.examined += 1;
    if (isMatch) progress.matched += 1;
    digest.difference(compared, known, isMatch);
    return undefined;
  }
  const change = { id, before, after };
  const heard = hear(quiet, change, { at, cooldownMs, matches: () => matches(progress, compared, judge) });
  progress.examined += 1;
  if (heard.end === 'held') progress.held += 1;
  if (heard.end === 'sent') list(progress, compared, judge.lists);
  return heard.quiet;
}

/** Whether one difference matches. A mistake and an evaluation that takes too long count as no match. */
export function matches(
  progress: Progress,
  compared: ComparedRecord,
  { expression, names, marks }: Pick<Judge, 'expression' | 'names' | 'marks'>,
): boolean {
  if (expression === null) return true;
  const { examined } = progress;
  const noteMistake = (message: string) => {
    progress.mistake ??= { recordId: compared.id, message };
  };
  if (progress.slow >= MAX_SLOW) return false;
  if (marks.isSlow(examined)) {
    progress.slow += 1;
    noteMistake(TOO_SLOW);
    return false;
  }
  marks.begin(examined);
  const { matches, mistake } = verdict(expression, { ...names, ...compared.names });
  if (mistake !== null) noteMistake(mistake);
  return matches;
}

/** Evaluates a filter for an event without differences. */
export function eventMatches(progress: Progress, { expression, names, marks }: Judge): boolean {
  if (expression === null) return true;
  if (marks.isSlow(0)) {
    progress.mistake = { recordId: null, message: TOO_SLOW };
    return false;
  }
  marks.begin(0);
  const { matches, mistake } = verdict(expression, { ...names, ...NO_RECORD });
  if (mistake !== null) progress.mistake = { recordId: null, message: mistake };
  return matches;
}

/**
 * How a message lists differences: the fields that differ; also whole records, which templates can use; or only what
 * people read, which is short. A feed lists more of these rows.
 */
export type Listing = 'fields' | 'records' | 'rows' | 'feed';

export function listingOf({ format }: Rule): Listing {
  if (isForPeople(format)) return 'rows';
  return format === 'template' ? 'records' : 'fields';
}

/** Maximum number of bytes of the rows of a message for people, however many fields they have. */
const MAX_ROWS_BYTES = 131_072;
const LISTED = {
  fields: { most: MAX_LISTED, bytes: MAX_DIFFERENCES_BYTES },
  records: { most: MAX_LISTED, bytes: MAX_DIFFERENCES_BYTES },
  rows: { most: MAX_ROWS, bytes: MAX_ROWS_BYTES },
  feed: { most: FEED_LIMIT.most, bytes: 1_048_576 },
} as const;

/** Adds a difference to the message, as far as it fits. */
export function list(progress: Progress, compared: ComparedRecord, listing: Listing): void {
  progress.matched += 1;
  if (progress.truncated) return;
  const { most, bytes: mostBytes } = LISTED[listing];
  const isFull = progress.listed.length === most;
  const text = isFull ? '' : JSON.stringify(listedDifference(compared, listing));
  const bytes = progress.listedBytes + Buffer.byteLength(text) + 1;
  // A template needs at least one record, however large it is.
  const isFirst = listing !== 'fields' && progress.listed.length === 0;
  if (isFull || (bytes > mostBytes && !isFirst)) {
    progress.truncated = true;
    return;
  }
  progress.listed.push(text);
  progress.listedBytes = bytes;
}

function listedDifference(compared: ComparedRecord, listing: Listing): SelectedDifference {
  const { difference, exact } = compared;
  if (listing === 'fields') return difference;
  const whole = { ...difference, record: exact.record ?? null, previous: exact.previous ?? null };
  return listing === 'records' ? whole : shortened(whole);
}

export function selectionOf({ matched, examined, listed, truncated }: Progress): Selection {
  return {
    matched,
    examined,
    truncated,
    differences: listed.map((text) => parseExactly(text) as SelectedDifference),
  };
}
