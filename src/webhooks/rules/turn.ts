/** One turn of a team: a step of as many of its decisions as fit into a short time. */
import { Problem } from '../../model/error.ts';
import { MAX_DIFFERENCES_BYTES } from '../../model/same-json.ts';
import type { PendingDecision } from '../../store/operations/rules/decisions.ts';
import type { DecisionStep } from '../../store/operations/rules/steps.ts';
import type { StoreReader } from '../../store/store.ts';
import type { DifferencePages } from './compared-records.ts';
import { type Decided, type Deciding, decide, endOf, mayEnd, type Place } from './decide.ts';
import type { Marks, Progress } from './examination.ts';
import { isSame } from './rule-rests.ts';

/** Maximum number of webhooks whose pending decisions are read for a turn. */
const MAX_WEBHOOKS = 100;
/**
 * Maximum number of decisions that are read for a turn if there are fewer webhooks, and of those of one webhook. Many
 * small decisions share a transaction then.
 */
const MAX_DECISIONS = 200;
const MAX_OF_WEBHOOK = 32;
/**
 * The bounds of what a turn writes in one transaction, in steps and characters. Other writes wait for the transaction,
 * and requests wait while the node loads and sends the deliveries that it has made due.
 */
const MAX_STEPS = 32;
const MAX_CHARACTERS = 65_536;
/** A turn begins no more steps after this time, so that other teams do not wait long. */
const TURN_MS = 200;

export interface Turn {
  teamId: string;
  /** The time of the store, in epoch milliseconds. */
  now: number;
  publicUrl: string;
  /** What the last turn of the team returned; null at first. */
  last: TurnEnd | null;
  /** Webhooks that rest. */
  except: readonly string[];
  /** Evaluations that were ended because they took too long. */
  slow: readonly (Place & { examined: number })[];
}

/** How a turn ended, for the next one. */
export interface TurnEnd {
  /** The webhook that took the last step. */
  webhookId: string | null;
  /** How many decisions of each webhook the next turn reads. */
  each: number;
}

export interface Turned {
  decided: Decided[];
  /** Webhooks whose step failed. What they had decided before it is among `decided`. */
  failed: Failed[];
  end: TurnEnd;
  /** Whether something was left that was due when the turn began. */
  hasMore: boolean;
}

export interface Failed {
  webhookId: string;
  sentence: string;
}

/** Watches over the evaluations, from another thread. */
export interface Watched extends Pick<Marks, 'begin' | 'pause'> {
  /** Called before the evaluations of a decision. */
  enter(place: Place): void;
}

/**
 * Takes a turn. Webhooks take their steps in the order of their ids, after the one that took the last step. The failure of
 * one does not keep the others from theirs.
 *
 * @throws Problem `database_unavailable`
 */
export async function takeTurn(
  turn: Turn,
  tools: { reader: Pick<StoreReader, 'decisions'>; pages: DifferencePages; watched: Watched },
): Promise<Turned> {
  const { teamId, now, publicUrl, last, except, slow } = turn;
  const { reader, pages, watched } = tools;
  const watch = (place: Place): Marks => {
    watched.enter(place);
    const known = slow.filter((one) => isSame(one, place)).map(({ examined }) => examined);
    const { begin, pause } = watched;
    return { begin, pause, isSlow: (examined) => known.includes(examined) };
  };
  const deciding: Deciding = { reader, pages, teamId, now, publicUrl, watch };
  const each = last?.each ?? 1;
  const after = last?.webhookId ?? '';
  const found = await reader.decisions.pending({ teamId, now, limit: MAX_WEBHOOKS, each, except, after });
  const byWebhook = Map.groupBy(found.decisions, ({ webhookId }) => webhookId);
  for (const { webhookId } of found.ended) byWebhook.set(webhookId, []);
  const decided: Decided[] = [];
  const failed: Failed[] = [];
  const endsAt = performance.now() + TURN_MS;
  const isOver = () => performance.now() >= endsAt || isFull(decided);
  let webhookId = last?.webhookId ?? null;
  let taken = 0;
  let hasMore = false;
  for (const [id, decisions] of inTurn([...byWebhook], webhookId)) {
    if (isOver()) break;
    try {
      if (decisions.length === 0) {
        const ended = await endOf({ webhookId: id, until: now }, deciding);
        if (ended !== undefined) decided.push(ended);
        hasMore ||= ended !== undefined;
      } else {
        const isDone = await decideInOrder(decisions, { deciding, decided, isOver });
        // What these decisions began, or found, may be over by now.
        hasMore ||= !isDone || decisions.length >= each || decisions.some(mayEnd);
      }
    } catch (error) {
      if (error instanceof Problem) throw error;
      failed.push({ webhookId: id, sentence: error instanceof Error ? error.message : String(error) });
    }
    watched.pause();
    webhookId = id;
    taken += 1;
  }
  const hasTime = taken === byWebhook.size && !isOver();
  const room = Math.floor(MAX_DECISIONS / Math.max(1, byWebhook.size));
  const end = { webhookId, each: hasTime ? Math.max(1, Math.min(MAX_OF_WEBHOOK, room)) : 1 };
  return { decided, failed, end, hasMore: hasMore || !hasTime || byWebhook.size >= MAX_WEBHOOKS };
}

/**
 * Decides about the events of one webhook, until one of them needs another step. Quiet records that a step has changed
 * are read again only after it was written. Returns whether all decisions were made.
 */
async function decideInOrder(
  decisions: readonly PendingDecision[],
  { deciding, decided, isOver }: { deciding: Deciding; decided: Decided[]; isOver: () => boolean },
): Promise<boolean> {
  for (const [place, decision] of decisions.entries()) {
    const one = await decide({ ...decision, turn: decision.turn + place }, deciding);
    decided.push(one);
    const { step } = one;
    const hasChangedQuiet = (step.quiet?.set ?? []).length > 0 || step.digestUntil !== undefined;
    if (!('outcome' in step)) return false;
    if (hasChangedQuiet || isOver()) return place === decisions.length - 1;
  }
  return true;
}

function isFull(decided: readonly Decided[]): boolean {
  const characters = decided.reduce((sum, { step }) => sum + charactersOf(step), 0);
  return decided.length >= MAX_STEPS || characters >= MAX_CHARACTERS;
}

/** About how much a step writes. */
function charactersOf(step: DecisionStep): number {
  const message = 'outcome' in step ? step.outcome : 'sent' in step ? step.sent : null;
  const digest = 'digest' in step ? MAX_DIFFERENCES_BYTES : 0;
  const body = message !== null && 'body' in message ? (message.body?.length ?? 0) : digest;
  const progress = 'progress' in step ? (step.progress as Progress).listedBytes : 0;
  const quiet = (step.quiet?.set ?? []).reduce(
    (sum, { sent, newest }) => sum + (sent?.length ?? 0) + (newest?.length ?? 0),
    0,
  );
  return body + progress + quiet;
}

/** Orders webhooks by their ids, beginning after one of them. */
function inTurn<Work>(work: [string, Work][], after: string | null): [string, Work][] {
  work.sort(([one], [other]) => (one < other ? -1 : 1));
  const first = after === null ? 0 : work.findIndex(([id]) => id > after);
  return first <= 0 ? work : [...work.slice(first), ...work.slice(0, first)];
}
