/** Operations of the Store that take several transactions: made of those of the table, the same on both databases. */
import type { AttemptLease } from '../model/job.ts';
import type { StagedWrite } from '../model/staging.ts';
import type { CallsOf } from './operation.ts';
import { type Settlement, settlementRow } from './operations/settle.ts';
import type { OPERATIONS } from './operations/table.ts';

type Calls = CallsOf<Pick<typeof OPERATIONS, 'jobs' | 'records' | 'webhooks' | 'deliveries'>>;

/** Returns only those: drivers add them to the groups of their calls. */
export function composed({ jobs, records, webhooks, deliveries }: Calls) {
  const { unsubscribe, ...ofDeliveries } = cancelingRest({ webhooks, deliveries });
  return {
    jobs: {
      /** Returns attempts to the queue at a graceful stop: due at once, no retry used up. Ignores those no longer held. */
      async release({ held }: { held: readonly AttemptLease[] }): Promise<void> {
        await Promise.all(held.map((one) => jobs.release({ held: one })));
      },
    },
    records: inParts(records),
    webhooks: { unsubscribe },
    deliveries: ofDeliveries,
  };
}

/** Staging and removing records: each transaction deals with the first ones, of some 1 MiB at most, one at least. */
function inParts(parts: Calls['records']) {
  return {
    /**
     * Writes one batch (at most 500 rows, 1 MiB) under the next version. Returns the `seq` of each write, in order.
     * Idempotent, so that it can be retried when the answer was lost. Rejects with an Error when a row is not what
     * `compare` returned. Takes several transactions if the rows that it supersedes are long.
     */
    async stage({
      held,
      writes,
    }: {
      held: AttemptLease;
      writes: readonly StagedWrite[];
    }): Promise<{ seqs: number[] }> {
      const seqs: number[] = [];
      do {
        const part = await parts.stage({ held, writes: writes.slice(seqs.length) });
        seqs.push(...part.seqs);
      } while (seqs.length < writes.length);
      return { seqs };
    },
    /**
     * Marks records of the current version (at most 500) as removed in the next one, except those that this run has
     * written. Takes several transactions if they are long.
     */
    async remove({ held, seqs }: { held: AttemptLease; seqs: readonly number[] }): Promise<void> {
      let left = seqs;
      do {
        const { dealtWith } = await parts.remove({ held, seqs: left });
        left = left.slice(dealtWith);
      } while (left.length > 0);
    },
  };
}

/**
 * Removing webhooks, and giving up old deliveries: what still waits for removed webhooks is canceled afterwards, where it
 * is more than the transaction that removed them may cancel. What is not got to, because the process ends, is canceled
 * with old deliveries.
 */
function cancelingRest({ webhooks, deliveries }: Pick<Calls, 'webhooks' | 'deliveries'>) {
  let isCanceling = false;
  let isExpiring = false;

  async function cancelTheRest(): Promise<void> {
    if (isCanceling) return;
    isCanceling = true;
    try {
      while ((await deliveries.cancelRemoved()).more);
    } catch {
      // Deliveries of removed webhooks are never loaded, whether they are canceled now or later.
    } finally {
      isCanceling = false;
    }
  }

  return {
    /**
     * Removes webhooks: nothing more is sent to them, and their waiting deliveries are canceled, a large backlog in the
     * background. Returns how many it removed.
     */
    async unsubscribe(input: { teamId: string; ids: readonly string[] }): Promise<number> {
      const { removed, more } = await webhooks.unsubscribe(input);
      if (more) void cancelTheRest();
      return removed;
    },
    /**
     * Stores the outcomes of attempts, all in one transaction. A success always counts; anything else only if the
     * delivery has had exactly `attempt - 1` attempts and the lane still has this `epoch`.
     */
    async settle({ settlements }: { settlements: readonly Settlement[] }): Promise<void> {
      if ((await deliveries.settle({ rows: settlements.map(settlementRow) })).more) void cancelTheRest();
    },
    /**
     * Marks deliveries as dead that still wait more than `olderMs` after they were created, also those of paused
     * webhooks. One that has never been sent to an active webhook is kept for its first attempt, however old. At most
     * `limit` per call; call until `done`.
     */
    async expire(input: { olderMs: number; limit: number }): Promise<{ done: boolean }> {
      if (!isExpiring) void cancelTheRest();
      const { done } = await deliveries.expire(input);
      isExpiring = !done;
      return { done };
    },
  };
}
