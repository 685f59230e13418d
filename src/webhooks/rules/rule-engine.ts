/**
 * Decides what webhooks with rules receive. One node at a time does this, in a thread.
 *
 *     a commit with an event ──▶ which teams ──▶ a turn of each team, ──▶ the steps are written ──┐
 *     cooldowns that end         are due?        in the rule thread       in one transaction      │
 *                                    ▲                                                            │
 *                                    └────────────── until no team has anything to decide ────────┘
 *
 * The tables are the queue. What a turn has found is written in one transaction, so a crash repeats a turn, and neither
 * loses nor doubles a message. A decision that takes long is made in many steps, between those of others.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../observe/log.ts';
import type { Observer } from '../../observe/observer.ts';
import type { Chore } from '../../std/chore.ts';
import { ThreadEndedError } from '../../std/thread.ts';
import { forDueTeams } from '../../store/due-teams.ts';
import { choreOnOneNode } from '../../store/on-one-node.ts';
import { quietMs } from '../../store/quiet.ts';
import type { Store } from '../../store/store.ts';
import type { Decided } from './decide.ts';
import { GuardedThread, type StartRules, TooSlowError } from './guarded-thread.ts';
import { RuleRests } from './rule-rests.ts';
import type { Failed, TurnEnd } from './turn.ts';

const EVERY_MS = 500;
/** If a node dies, another one decides after this time. Steps that both compute are written once. */
const LEASE_MS = 6_000;
/** If nothing could be written in this many turns of a team, its next turn waits for the next search. */
const MAX_UNWRITTEN = 3;
/**
 * While a decision takes more than one turn, the engine pauses after each round for a multiple of its duration, so that
 * most of the processor, its caches and the writer are left to requests.
 */
const REST_SHARE = 3;
const MAX_REST_MS = 500;

export class RuleEngine {
  readonly #store: Store;
  readonly #observer: Observer;
  readonly #log: Logger;
  readonly #publicUrl: () => string;
  readonly #thread: GuardedThread;
  readonly #chore: Chore;
  readonly #rests = new RuleRests();
  /** How the last turn of each team with pending decisions ended. */
  readonly #ends = new Map<string, TurnEnd>();
  /** The number of turns of each team since one was written. */
  readonly #unwritten = new Map<string, number>();
  /** Whether the current round has left a decision unfinished. */
  #isLong = false;

  /** @param input.startThread starts the rule thread; tests pass their own function */
  constructor(input: {
    store: Store;
    databaseUrl: string;
    publicUrl: () => string;
    log: Logger;
    observer: Observer;
    random: () => number;
    nodeId: string;
    startThread?: StartRules;
  }) {
    const { store, log } = input;
    this.#store = store;
    this.#observer = input.observer;
    this.#log = log;
    this.#publicUrl = input.publicUrl;
    this.#thread = new GuardedThread({ ...input, start: input.startThread });
    this.#chore = choreOnOneNode({
      ...input,
      name: 'webhooks.decide',
      everyMs: EVERY_MS,
      leaseMs: LEASE_MS,
      failed: 'decisions.not_made',
      work: (signal) => this.#work(signal),
      quietMs: () => quietMs(store, async () => this.#nextDueAt()),
      watch: (poller) => store.watch(({ decisions }) => decisions && poller.nudge()),
    });
  }

  start(): void {
    this.#chore.start();
  }

  /** Resolves when the current turn has ended, which takes about a quarter of a second, or a second if it hangs. */
  async stop(): Promise<void> {
    await this.#chore.stop();
    await this.#thread.close();
  }

  /** Decides everything that is due, except for webhooks that rest. Never rejects. */
  tick(): Promise<void> {
    return this.#chore.tick();
  }

  async #nextDueAt(): Promise<number | null> {
    const [first] = await this.#store.agenda.due({
      item: 'decisions',
      until: Number.MAX_SAFE_INTEGER,
      limit: 1,
    });
    return first?.at ?? null;
  }

  /** Gives each team that is due a turn, until none has anything to decide. */
  async #work(signal: AbortSignal): Promise<void> {
    const store = this.#store;
    const log = this.#log;
    for (let goesOn = true; goesOn && !signal.aborted; ) {
      goesOn = false;
      this.#isLong = false;
      const fromMs = performance.now();
      await forDueTeams(
        { store, log, item: 'decisions', failed: 'decisions.not_made', signal },
        async (teamId) => {
          if (await this.#takeTurn(teamId)) goesOn = true;
        },
      );
      if (!goesOn || !this.#isLong) continue;
      const tookMs = performance.now() - fromMs;
      await pause(Math.min(REST_SHARE * tookMs, MAX_REST_MS), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Returns whether the team should have another turn. */
  async #takeTurn(teamId: string): Promise<boolean> {
    const store = this.#store;
    const now = store.now();
    const { except, slow } = this.#rests.of(teamId, now);
    const turn = {
      teamId,
      now,
      publicUrl: this.#publicUrl(),
      last: this.#ends.get(teamId) ?? null,
      except,
      slow,
    };
    try {
      const { decided, failed, end, hasMore } = await this.#thread.call('turn', turn);
      if (decided.length === 0) {
        this.#restAfter(teamId, failed);
        this.#ends.delete(teamId);
        this.#unwritten.delete(teamId);
        // A webhook that rests or has failed still has something to decide.
        if (except.length + failed.length === 0) await store.decisions.raise({ teamId });
        return false;
      }
      this.#ends.set(teamId, end);
      this.#isLong ||= decided.some(({ step }) => 'progress' in step);
      const counts = await store.decisions.step({ teamId, steps: decided.map(({ step }) => step) });
      const written = decided.filter((_, place) => counts[place]);
      for (const one of written) this.#report(teamId, one);
      this.#restAfter(teamId, failed);
      // Events that come meanwhile nudge the chore, and its next search finds if nothing is left.
      return this.#mayGoOn(teamId, written.length > 0) && (hasMore || written.length < decided.length);
    } catch (error) {
      if (error instanceof TooSlowError && error.place !== undefined) {
        const { webhookId } = error.place;
        const place = { ...error.place, examined: error.examined };
        this.#rests.rest(teamId, webhookId, store.now(), place);
        this.#observer.decisionStepDone?.({ ...NO_STEP, teamId, webhookId, mistake: 'time' });
        return true;
      }
      // A thread that was ended from outside is replaced for the next turn.
      if (error instanceof ThreadEndedError) return this.#mayGoOn(teamId, false);
      throw error;
    }
  }

  #restAfter(teamId: string, failed: readonly Failed[]): void {
    for (const { webhookId, sentence } of failed) {
      this.#rests.rest(teamId, webhookId, this.#store.now());
      this.#log.error({ err: new Error(sentence), teamId, webhookId }, 'decisions.not_made');
    }
  }

  #mayGoOn(teamId: string, isWritten: boolean): boolean {
    const turns = isWritten ? 0 : (this.#unwritten.get(teamId) ?? 0) + 1;
    if (turns > 0) this.#unwritten.set(teamId, turns);
    else this.#unwritten.delete(teamId);
    return turns < MAX_UNWRITTEN;
  }

  #report(teamId: string, { step, outcome, eventId, evaluated }: Decided): void {
    const { webhookId, workflowId } = step;
    // The next cooldowns that end have other evaluations with the same numbers.
    if (outcome !== null || 'sent' in step) this.#rests.end(webhookId);
    const counts = 'outcome' in step ? { matched: step.matched, examined: step.examined } : {};
    this.#observer.decisionStepDone?.({
      ...NO_STEP,
      ...counts,
      teamId,
      webhookId,
      workflowId,
      eventId,
      outcome,
      evaluated,
      mistake: step.mistake == null ? null : 'rule',
      cooldownEnded: 'sent' in step,
    });
  }
}

const NO_STEP = {
  workflowId: null,
  eventId: null,
  outcome: null,
  matched: null,
  examined: null,
  evaluated: 0,
  mistake: null,
  cooldownEnded: false,
} as const;
