/** What became of the deliveries that a replay has sent. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AttemptOutcome } from '../model/delivery.ts';
import type { ReplayedDelivery } from '../store/operations/replays.ts';
import type { Store } from '../store/store.ts';

const PART = 500;
/** Deliveries looked at per reading: what a larger replay has sent last is not counted. */
const MAX_LOOKED_AT = 100_000;
/** A replay makes deliveries due one after the other, within this. The first retry after a failure comes later. */
const SOON_MS = 2_000;
/** Kinds of failures that are told; the others count as failed. */
const MAX_FAILURES = 20;

export interface ReplayOutcome {
  arrived: number;
  /** Not tried since the replay began: due, in flight, or held back with their webhook. */
  underWay: number;
  /** Their last attempt failed: `dead`, or to be tried again. */
  failed: number;
  /** Their webhook was unsubscribed. */
  canceled: number;
  /** What the failed ones came to, the most frequent first. */
  failures: ReplayFailure[];
  /** False if the replay has sent more than are counted. */
  isComplete: boolean;
}

interface ReplayFailure {
  outcome: AttemptOutcome | null;
  status: number | null;
  error: string | null;
  count: number;
  /** How many of them are tried again by themselves. */
  retried: number;
}

export async function replayOutcome(
  { deliveries, now }: Pick<Store, 'deliveries' | 'now'>,
  { teamId, id, createdAt }: { teamId: string; id: string; createdAt: number },
): Promise<ReplayOutcome> {
  const sum = { arrived: 0, underWay: 0, failed: 0, canceled: 0 };
  const failures = new Map<string, ReplayFailure>();
  let after = 0;
  let isComplete = false;
  for (let looked = 0; !isComplete && looked < MAX_LOOKED_AT; looked += PART) {
    const part = await deliveries.replayed({ teamId, id, after, limit: PART });
    for (const delivery of part) {
      const kind = kindOf(delivery, { createdAt, now: now() });
      sum[kind] += 1;
      if (kind === 'failed') count(failures, delivery);
    }
    after = part.at(-1)?.sequence ?? after;
    isComplete = part.length < PART;
    await nextTurn();
  }
  const most = [...failures.values()].sort((a, b) => b.count - a.count).slice(0, MAX_FAILURES);
  return { ...sum, failures: most, isComplete };
}

/**
 * One that was under way when the replay made it due ends as an attempt that began before: what says that it was tried
 * is that it is due later again.
 */
function kindOf(
  { state, nextAt, last }: ReplayedDelivery,
  { createdAt, now }: { createdAt: number; now: number },
) {
  switch (state) {
    case 'delivered':
      return 'arrived';
    case 'canceled':
      return 'canceled';
    case 'dead':
      return 'failed';
    default:
      return last !== null && (last.at >= createdAt || (nextAt ?? 0) > now + SOON_MS) ? 'failed' : 'underWay';
  }
}

function count(failures: Map<string, ReplayFailure>, { state, last }: ReplayedDelivery): void {
  const key = JSON.stringify([last?.outcome, last?.status, last?.error]);
  const known = failures.get(key) ?? {
    outcome: last?.outcome ?? null,
    status: last?.status ?? null,
    error: last?.error ?? null,
    count: 0,
    retried: 0,
  };
  known.count += 1;
  if (state === 'waiting') known.retried += 1;
  failures.set(key, known);
}
