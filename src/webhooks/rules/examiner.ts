/** Applies filters and rules for readers of events and changes, in a thread of its own. Teams take turns. */
import { Problem } from '../../model/error.ts';
import type { EventType } from '../../model/event.ts';
import type { Rule } from '../../model/rule.ts';
import type { Selection } from '../../model/selection.ts';
import type { Logger } from '../../observe/log.ts';
import { FairPlaces, NoPlaceError } from '../../std/fair-share.ts';
import { ThreadEndedError } from '../../std/thread.ts';
import type { StoredEvent } from '../../store/operations/events.ts';
import type { ChangedRow } from '../../store/operations/history/changes.ts';
import type { JudgedEvent } from '../../store/operations/rules/decisions.ts';
import type { Store, StoreReader } from '../../store/store.ts';
import type { Listing, Progress } from './examination.ts';
import { GuardedThread, type StartRules, TooSlowError } from './guarded-thread.ts';
import type { Tried } from './rule-reading.ts';
import type { RuleCalls } from './rule-thread.ts';

/** Maximum number of calls that wait for their turn. */
const MAX_WAITING = 200;
/** Maximum number of pages of events that are read to find the last ones of certain types. */
const MAX_PAGES = 20;

/** The result of applying a filter to an event. */
export interface ExaminedEvent {
  matches: boolean;
  /** Null if the filter reads no records, or the event reports none. */
  matched: number | null;
  examined: number | null;
  /** The event with only the differences that match; null if it does not match. */
  body: string | null;
  /** Why it does not match, or what was not examined. */
  reason: string | null;
  mistake: { recordId: string | null; message: string } | null;
}

/** Evaluates for readers. Filters must have been compiled by the caller, so that mistakes in them are reported first. */
export interface Examiner {
  /**
   * Applies a filter to an event, as a webhook with this filter would, except that first versions are not skipped.
   *
   * @throws Problem `field_invalid` if the filter takes too long, `overloaded`, the reason of the signal
   */
  examineEvent(input: {
    teamId: string;
    event: StoredEvent;
    filter: string;
    signal?: AbortSignal | undefined;
  }): Promise<ExaminedEvent>;
  /**
   * Selects the differences of a `workflow_data_change` that match a filter; null if none matches.
   *
   * @param input.filter null: all differences
   * @throws Problem `field_invalid` if the filter takes too long, `overloaded`
   */
  selectDifferences(input: {
    teamId: string;
    event: StoredEvent;
    filter: string | null;
    lists: Listing;
    /** When to give up, as `performance.now()`. */
    deadline: number;
  }): Promise<Selection | null>;
  /**
   * Returns the rows of changes that match a filter. There is no event: its names are empty.
   *
   * @throws Problem `field_invalid` if the filter takes too long, `overloaded`
   */
  matchingRows(input: {
    teamId: string;
    workflowId: string;
    filter: string;
    rows: readonly ChangedRow[];
  }): Promise<ChangedRow[]>;
  /**
   * Tries a rule on the last events (oldest first), with its cooldowns and digests.
   *
   * @param input.types default: all types of events
   * @throws Problem `field_invalid` if the filter or the template takes too long, `overloaded`
   */
  tryRule(input: {
    teamId: string;
    rule: Rule;
    workflowId?: string | undefined;
    types?: readonly EventType[] | undefined;
    last: number;
  }): Promise<Tried[]>;
}

type Call = <Name extends 'event' | 'selection' | 'rows' | 'trial'>(
  teamId: string,
  name: Name,
  input: RuleCalls[Name][0],
) => Promise<RuleCalls[Name][1]>;

/** An examiner of a server. */
export class ExaminerThread implements Examiner {
  readonly #thread: GuardedThread;
  readonly #places = new FairPlaces({ places: 1, mostWaiting: MAX_WAITING });
  readonly #examiner: Examiner;

  constructor(input: {
    store: Pick<Store, 'events' | 'now'>;
    databaseUrl: string;
    publicUrl: () => string;
    log: Logger;
    start?: StartRules;
  }) {
    this.#thread = new GuardedThread(input);
    this.#examiner = examinerBy(input, (teamId, name, asked) => this.#call(teamId, name, asked));
  }

  readonly examineEvent: Examiner['examineEvent'] = (input) => this.#examiner.examineEvent(input);
  readonly selectDifferences: Examiner['selectDifferences'] = (input) =>
    this.#examiner.selectDifferences(input);
  readonly matchingRows: Examiner['matchingRows'] = (input) => this.#examiner.matchingRows(input);
  readonly tryRule: Examiner['tryRule'] = (input) => this.#examiner.tryRule(input);

  /** Ends the thread after its current call. */
  stop(): Promise<void> {
    return this.#thread.close();
  }

  async #call<Name extends keyof RuleCalls>(
    teamId: string,
    name: Name,
    input: RuleCalls[Name][0],
  ): Promise<RuleCalls[Name][1]> {
    try {
      return await this.#places.run(teamId, () => this.#thread.call(name, input));
    } catch (error) {
      if (error instanceof NoPlaceError) throw new Problem('overloaded', { cause: error });
      if (error instanceof ThreadEndedError) throw new Problem('database_unavailable', { cause: error });
      throw error instanceof TooSlowError ? tooLong() : error;
    }
  }
}

/** An examiner that evaluates in this thread, for commands. */
export async function examinerHere(input: {
  store: Pick<Store, 'events' | 'now'>;
  reader: Pick<StoreReader, 'records' | 'decisions'>;
  publicUrl: () => string;
}): Promise<Examiner> {
  const { RuleReading } = await import('./rule-reading.ts');
  const reading = new RuleReading(input.reader);
  return examinerBy(input, (async (_teamId, name, asked) => reading[name](asked as never)) as Call);
}

function examinerBy(
  { store, publicUrl }: { store: Pick<Store, 'events' | 'now'>; publicUrl: () => string },
  call: Call,
): Examiner {
  return {
    async examineEvent({ teamId, event, filter, signal }) {
      const asked = { teamId, event: rowOf(event), filter, publicUrl: publicUrl() };
      let progress: Progress | null = null;
      for (;;) {
        signal?.throwIfAborted();
        const step: RuleCalls['event'][1] = await call(teamId, 'event', { ...asked, progress });
        ({ progress } = step);
        if (progress.slow > 0) throw tooLong();
        if (!step.isDone) continue;
        const { matched, examined, mistake } = progress;
        const counts = examined > 0 ? { matched, examined } : { matched: null, examined: null };
        return { matches: step.body !== null, ...counts, body: step.body, reason: step.reason, mistake };
      }
    },
    async selectDifferences({ teamId, event, deadline, ...selected }) {
      const asked = { teamId, event: rowOf(event), ...selected };
      let progress: Progress | null = null;
      for (;;) {
        if (performance.now() >= deadline) throw tooLong();
        const step: RuleCalls['selection'][1] = await call(teamId, 'selection', { ...asked, progress });
        ({ progress } = step);
        if (progress.slow > 0) throw tooLong();
        if (step.isDone) return step.selection;
      }
    },
    async matchingRows({ teamId, workflowId, filter, rows }) {
      if (rows.length === 0) return [];
      const { places, isLate } = await call(teamId, 'rows', { workflowId, filter, rows });
      if (isLate) throw tooLong();
      return places.map((place) => rows[place] as ChangedRow);
    },
    async tryRule({ teamId, rule, last, ...selection }) {
      const events = await lastEvents(store, { teamId, ...selection }, last);
      const { workflowId = null } = selection;
      const of = { teamId, workflowId, rule, events };
      return call(teamId, 'trial', { ...of, publicUrl: publicUrl(), now: store.now() });
    },
  };
}

function tooLong(): Problem {
  return new Problem('field_invalid', {
    sentence: 'The filter takes too long. Use simpler conditions, and shorter lists and patterns',
  });
}

/** The last events of a selection, oldest first. */
async function lastEvents(
  store: Pick<Store, 'events'>,
  selection: { teamId: string; workflowId?: string | undefined; types?: readonly EventType[] | undefined },
  last: number,
): Promise<JudgedEvent[]> {
  const { teamId, workflowId, types } = selection;
  const found: StoredEvent[] = [];
  let before: string | null | undefined;
  for (let pages = 0; found.length < last && before !== null && pages < MAX_PAGES; pages += 1) {
    const page = await store.events.history({
      teamId,
      ...(workflowId === undefined ? {} : { workflowId }),
      ...(types === undefined ? {} : { types }),
      ...(before === undefined ? {} : { before }),
      limit: last - found.length,
    });
    found.push(...page.events);
    before = page.next;
  }
  return found.map(rowOf).reverse();
}

function rowOf({ id, sequence, type, workflowId, jobId, body, createdAt }: StoredEvent): JudgedEvent {
  return { eventId: id, sequence, type, workflowId, jobId, body, createdAt };
}
