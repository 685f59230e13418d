/** Evaluates filters and rules for readers: nothing is decided or stored. Runs in the thread of readers, or in a command. */
import { ExpressionMistake, verdict } from '../../model/expression.ts';
import type { Quiet } from '../../model/quiet.ts';
import { DEFAULT_RULE, type Rule } from '../../model/rule.ts';
import type { Selection } from '../../model/selection.ts';
import { toIso } from '../../std/clock.ts';
import type { ChangedRow } from '../../store/operations/history/changes.ts';
import type { JudgedEvent, QuietRow } from '../../store/operations/rules/decisions.ts';
import type { StoreReader } from '../../store/store.ts';
import { ComparedRecord, DifferencePages } from './compared-records.ts';
import { endCooldowns, examine, type Found, gatheredReason } from './decide.ts';
import { compiled, factsOf, readForPeople, shape } from './event-facts.ts';
import { type Listing, type Marks, noProgress, type Progress, UNWATCHED } from './examination.ts';
import { TrialDigest } from './trial-digest.ts';

/** How long one call may evaluate before it gives up. */
const MATCH_MS = 2_000;
const TRIAL_MS = 3_000;
/** A rule that is tried has no webhook. */
const NO_WEBHOOK = '';

/** An event that a filter is applied to. */
export interface ReadEvent {
  teamId: string;
  event: JudgedEvent;
  filter: string;
  publicUrl: string;
  /** What earlier steps have found; null at first. */
  progress: Progress | null;
}

/** The result of a step. `body` is null while it is not done, or if the event does not match. */
export interface ReadStep {
  isDone: boolean;
  progress: Progress;
  body: string | null;
  reason: string | null;
}

/** An event whose differences a feed lists. */
export interface ReadSelection {
  teamId: string;
  event: JudgedEvent;
  /** Null: all differences. */
  filter: string | null;
  lists: Listing;
  /** What earlier steps have found; null at first. */
  progress: Progress | null;
}

/** The result of a step. `selection` is null while it is not done, or if the event does not match. */
export interface SelectionStep {
  isDone: boolean;
  progress: Progress;
  selection: Selection | null;
}

/** Rows of changes that a filter is applied to. */
export interface ReadRows {
  workflowId: string;
  filter: string;
  rows: readonly ChangedRow[];
}

/** A rule that is tried on events, oldest first. */
export interface Trial {
  teamId: string;
  /** The workflow of the webhook; null: all. */
  workflowId: string | null;
  rule: Rule;
  events: readonly JudgedEvent[];
  publicUrl: string;
  /** The time of the store, in epoch milliseconds. */
  now: number;
}

/** What a webhook with the rule would have been sent for an event, or at the end of cooldowns or a digest. */
export interface Tried {
  /** The id of the message, which is that of its event except at the end of cooldowns. */
  eventId: string;
  type: string;
  /** ISO 8601. */
  timestamp: string;
  sent: boolean;
  /** Null if no records were examined. */
  matched: number | null;
  examined: number | null;
  /** Exactly what would be sent. */
  body: string | null;
  /** Why nothing would be sent, or what was not examined. */
  reason: string | null;
  mistake: { recordId: string | null; message: string } | null;
  cooldownEnded: boolean;
}

export class RuleReading {
  readonly #reader: Pick<StoreReader, 'records' | 'decisions'>;
  readonly #pages: DifferencePages;
  readonly #marks: Marks;

  constructor(reader: Pick<StoreReader, 'records' | 'decisions'>, marks: Marks = UNWATCHED) {
    this.#reader = reader;
    this.#pages = new DifferencePages(reader);
    this.#marks = marks;
  }

  /** Applies a filter to an event, or to as many of its differences as fit into a step. */
  async event({ teamId, event, filter, publicUrl, progress: before }: ReadEvent): Promise<ReadStep> {
    const rule: Rule = { ...DEFAULT_RULE, filter, firstVersion: 'send' };
    const rewrites = await this.#erasures(teamId, event);
    const progress = before?.rewrites === rewrites ? before : noProgress(rewrites);
    const found = await this.#examine(teamId, { event, rule, progress, known: new Map() });
    const { isDone, reason } = found;
    if (!isDone || !found.matches) return { isDone, progress, body: null, reason };
    const { body } = shape(rule, event, found.selection, { publicUrl, marks: this.#marks });
    return { isDone, progress, body, reason };
  }

  /** Selects the differences of an event, or as many of them as fit into a step. */
  async selection({ teamId, event, filter, lists, progress: before }: ReadSelection): Promise<SelectionStep> {
    const rule: Rule = { ...DEFAULT_RULE, filter, firstVersion: 'send' };
    const rewrites = await this.#erasures(teamId, event);
    const progress = before?.rewrites === rewrites ? before : noProgress(rewrites);
    const found = await this.#examine(teamId, { event, rule, progress, lists, known: new Map() });
    return { isDone: found.isDone, progress, selection: found.isDone ? found.selection : null };
  }

  /** Returns the places of the rows that match. `isLate` if this takes too long. */
  rows({ workflowId, filter, rows }: ReadRows): { places: number[]; isLate: boolean } {
    const expression = compiled(filter);
    if (expression === null || expression instanceof ExpressionMistake) return { places: [], isLate: false };
    const event = {
      id: '',
      type: 'workflow_data_change',
      workflowId,
      jobId: null,
      timestamp: '',
      sequence: 0,
    };
    const until = performance.now() + MATCH_MS;
    const places: number[] = [];
    for (const [place, row] of rows.entries()) {
      if (performance.now() >= until) return { places, isLate: true };
      this.#marks.begin(place);
      if (verdict(expression, { event, data: null, ...new ComparedRecord(row).names }).matches)
        places.push(place);
    }
    this.#marks.pause();
    return { places, isLate: false };
  }

  /** Tries a rule on events, with its cooldowns and digests. */
  async trial(trial: Trial): Promise<Tried[]> {
    const { events, now } = trial;
    const until = performance.now() + TRIAL_MS;
    const tried: Tried[] = [];
    const quiet = new Cooldowns();
    const digest = trial.rule.digest === null ? null : new TrialDigest(trial.rule.digest);
    for (const event of events) {
      if (performance.now() >= until) {
        tried.push({ ...unsent(event), reason: 'Not tried, because the events before it took too long' });
        continue;
      }
      tried.push(...this.#endCooldowns(trial, quiet, event.createdAt));
      tried.push(...(await this.#endDigest(trial, digest, event.createdAt)));
      tried.push(await this.#tryEvent(trial, event, { quiet, digest, until }));
    }
    tried.push(...this.#endCooldowns(trial, quiet, now));
    tried.push(...(await this.#endDigest(trial, digest, Number.POSITIVE_INFINITY)));
    return tried;
  }

  async #tryEvent(
    trial: Trial,
    event: JudgedEvent,
    { quiet, digest, until }: { quiet: Cooldowns; digest: TrialDigest | null; until: number },
  ): Promise<Tried> {
    if (event.type === 'webhook_digest') {
      return { ...unsent(event), reason: 'Only the webhook that has gathered a digest is sent it' };
    }
    const { teamId, rule } = trial;
    const progress = noProgress(await this.#erasures(teamId, event));
    let found: Found;
    do {
      if (performance.now() >= until)
        return { ...unsent(event), reason: 'Examining the event took too long' };
      const making = digest?.begin(event, progress) ?? null;
      const known = digest?.records(event.workflowId) ?? quiet.of(event.workflowId);
      found = await this.#examine(teamId, { event, rule, progress, known, digest: making });
      quiet.set(event, found.quiet);
      const isWhole = found.isDone && found.matches && progress.examined === 0;
      if (isWhole) making?.event(event, factsOf(event).names.data);
      if (making !== null) digest?.keep(event, making.changes());
    } while (!found.isDone);
    const isSent = found.matches && digest === null;
    const shaped = isSent ? await this.#shape(trial, event, found) : undefined;
    const hasCounts = progress.examined > 0;
    return {
      ...unsent(event),
      sent: isSent,
      matched: hasCounts ? progress.matched : null,
      examined: hasCounts ? progress.examined : null,
      body: shaped?.body ?? null,
      reason: found.matches && !isSent ? gatheredReason(progress, found.reason) : found.reason,
      mistake: progress.mistake ?? ofTemplate(shaped?.mistake),
    };
  }

  /** The digest, if it is over by then. One that is still open is shown as it is now, and when it is sent. */
  async #endDigest(trial: Trial, digest: TrialDigest | null, until: number): Promise<Tried[]> {
    if (digest?.until === undefined || digest.until > until) return [];
    const event = digest.end(trial);
    if (event === undefined) return [];
    const { body, mistake } = await this.#shape(trial, event, { selection: null });
    const isOpen = event.createdAt > trial.now;
    const reason = isOpen
      ? `Sent at ${toIso(event.createdAt)}, with everything that matches until then`
      : null;
    return [{ ...unsent(event), sent: !isOpen, body, reason, mistake: ofTemplate(mistake) }];
  }

  async #shape(
    { teamId, rule, publicUrl }: Trial,
    event: JudgedEvent,
    { selection }: Pick<Found, 'selection'>,
  ) {
    const people = await readForPeople(this.#reader, rule, { ...event, teamId, webhookId: NO_WEBHOOK });
    return shape(rule, event, selection, { publicUrl, marks: this.#marks, people });
  }

  #endCooldowns({ rule, now, publicUrl, events }: Trial, quiet: Cooldowns, until: number): Tried[] {
    return quiet.takeEnded(until).flatMap((rows) => {
      const newest = Math.max(...rows.map(({ sequence }) => sequence));
      const event = events.find(({ sequence }) => sequence === newest) ?? null;
      const ended = endCooldowns({ rule, event, rows }, until, { now, publicUrl, marks: this.#marks });
      quiet.put(ended.quiet);
      if (event === null || ended.message === null) return [];
      const { matched, examined, mistake } = ended.progress;
      const { messageId: eventId, body } = ended.message;
      return [
        { ...unsent(event), eventId, sent: true, matched, examined, body, mistake, cooldownEnded: true },
      ];
    });
  }

  #examine(teamId: string, asked: Omit<Parameters<typeof examine>[0], 'rewrites'>): Promise<Found> {
    const none = { decisions: { quiet: async () => [] } };
    const tools = { reader: none, pages: this.#pages, teamId, marks: this.#marks };
    return examine({ ...asked, rewrites: asked.progress.rewrites }, tools);
  }

  /** Pages that were read before an erasure must not be used after it. */
  async #erasures(teamId: string, { workflowId }: JudgedEvent): Promise<number> {
    if (workflowId === null) return 0;
    return (await this.#reader.records.version({ teamId, workflowId }))?.erasures ?? 0;
  }
}

function unsent(event: JudgedEvent): Tried {
  return {
    eventId: event.eventId,
    type: event.type,
    timestamp: toIso(event.createdAt),
    sent: false,
    matched: null,
    examined: null,
    body: null,
    reason: null,
    mistake: null,
    cooldownEnded: false,
  };
}

function ofTemplate(message: string | null | undefined): Tried['mistake'] {
  return message == null ? null : { recordId: null, message };
}

/** The quiet records of a trial. */
class Cooldowns {
  readonly #byWorkflow = new Map<string, Map<string, QuietRow>>();

  of(workflowId: string | null): Map<string, QuietRow> {
    const rows = this.#byWorkflow.get(workflowId ?? '') ?? new Map<string, QuietRow>();
    this.#byWorkflow.set(workflowId ?? '', rows);
    return rows;
  }

  set({ workflowId, sequence }: JudgedEvent, quiet: ReadonlyMap<string, Quiet>): void {
    for (const one of quiet.values()) {
      this.put([{ ...one, workflowId: workflowId ?? '', sequence, revision: 0, matches: null }]);
    }
  }

  put(rows: readonly QuietRow[]): void {
    for (const row of rows) this.of(row.workflowId).set(row.id, row);
  }

  /** Removes the records whose cooldowns are over, and returns them by workflow. */
  takeEnded(until: number): QuietRow[][] {
    return [...this.#byWorkflow.values()].flatMap((rows) => {
      const ended = [...rows.values()].filter((row) => row.until <= until);
      for (const { id } of ended) rows.delete(id);
      return ended.length === 0 ? [] : [ended];
    });
  }
}
