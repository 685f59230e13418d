/** One turn of a team: a step of as many of its decisions as fit into a short time. */
import type { PendingDecision } from '../../store/operations/rules/decisions.ts';
import type { StoreReader } from '../../store/store.ts';
import type { DifferencePages } from './compared-records.ts';
import { type Decided, type Deciding, decide, endOf, type Place } from './decide.ts';
import type { Marks } from './examination.ts';

/** Maximum number of webhooks whose pending decisions are read for a turn. */
const MAX_WEBHOOKS = 100;
/** A turn begins no more steps after this time, so that other teams do not wait long. */
const TURN_MS = 200;

export interface Turn {
  teamId: string;
  /** The time of the store, in epoch milliseconds. */
  now: number;
  publicUrl: string;
  /** The webhook that had the last step of the team's turn before; null at first. */
  after: string | null;
  /** Webhooks that rest. */
  except: readonly string[];
  /** Evaluations that were ended because they took too long. */
  slow: readonly (Place & { examined: number })[];
}

export interface Turned {
  decided: Decided[];
  /** The value of `after` for the next turn. */
  after: string | null;
}

/** Watches over the evaluations, from another thread. */
export interface Watched extends Pick<Marks, 'begin' | 'pause'> {
  /** Called before the evaluations of a decision. */
  enter(place: Place): void;
}

/** Takes a turn. Webhooks take their steps in the order of their ids, after the one that had the last step. */
export async function takeTurn(
  turn: Turn,
  tools: { reader: Pick<StoreReader, 'decisions'>; pages: DifferencePages; watched: Watched },
): Promise<Turned> {
  const { teamId, now, publicUrl, except, slow } = turn;
  const { reader, pages, watched } = tools;
  const watch = (place: Place): Marks => {
    watched.enter(place);
    const known = slow.filter((one) => isSame(one, place)).map(({ examined }) => examined);
    const { begin, pause } = watched;
    return { begin, pause, isSlow: (examined) => known.includes(examined) };
  };
  const deciding: Deciding = { reader, pages, teamId, now, publicUrl, watch };
  const found = await reader.decisions.pending({ teamId, now, limit: MAX_WEBHOOKS, except });
  const work: Work[] = inTurn([...found.decisions, ...found.ended], turn.after);
  const decided: Decided[] = [];
  const endsAt = performance.now() + TURN_MS;
  let { after } = turn;
  for (const one of work) {
    if (performance.now() >= endsAt) break;
    const { webhookId } = one;
    const step =
      'sequence' in one ? await decide(one, deciding) : await endOf({ webhookId, until: now }, deciding);
    watched.pause();
    if (step !== undefined) decided.push(step);
    after = webhookId;
  }
  return { decided, after };
}

type Work = PendingDecision | { webhookId: string };

export function isSame(one: Place, other: Place): boolean {
  return (
    one.webhookId === other.webhookId && one.sequence === other.sequence && one.rewrites === other.rewrites
  );
}

/** Orders work by webhook, beginning after one of them. */
function inTurn(work: Work[], after: string | null): Work[] {
  work.sort((one, other) => (one.webhookId < other.webhookId ? -1 : 1));
  const first = after === null ? 0 : work.findIndex(({ webhookId }) => webhookId > after);
  return first <= 0 ? work : [...work.slice(first), ...work.slice(0, first)];
}
