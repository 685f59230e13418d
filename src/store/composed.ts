/** Store operations that need several transactions, built from operations of the table. */
import type { AttemptLease } from '../model/job.ts';
import type { StagedWrite } from '../model/planned-writes.ts';
import type { CallsOf } from './operation.ts';
import { type Settlement, settlementRow } from './operations/settle.ts';
import type { OPERATIONS } from './operations/table.ts';

type Calls = CallsOf<Pick<typeof OPERATIONS, 'jobs' | 'records' | 'webhooks' | 'deliveries'>>;

/** Returns groups of the table, with some operations replaced by those of this file. */
export function composed({ jobs, records, webhooks, deliveries }: Calls) {
  const { unsubscribe, ...ofDeliveries } = cancelingRest({ webhooks, deliveries });
  return {
    jobs: {
      ...jobs,
      /** Returns attempts to the queue at shutdown: due immediately, no retry used up. Ignores attempts no longer held. */
      async release({ held }: { held: readonly AttemptLease[] }): Promise<void> {
        await Promise.all(held.map((one) => jobs.release({ held: one })));
      },
    },
    records: { ...records, ...inParts(records) },
    webhooks: { ...webhooks, unsubscribe },
    deliveries: { ...deliveries, ...ofDeliveries },
  };
}

/** Staging and removing records: each transaction handles as many as fit into about 1 MiB, at least one. */
function inParts(parts: Calls['records']) {
  return {
    /**
     * Writes one batch (at most 500 rows, 1 MiB) under the next version. Returns the `seq` of each write, in order.
     * Idempotent, so that a call whose result was lost can be repeated. Rejects with an Error if a row differs from what
     * `compare` returned. Takes several transactions if the rows that it replaces are long.
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
     * written. Takes several transactions if the records are long.
     */
    async remove({ held, seqs }: { held: AttemptLease; seqs: readonly number[] }): Promise<void> {
      let left = seqs;
      do {
        const { handled } = await parts.remove({ held, seqs: left });
        left = left.slice(handled);
      } while (left.length > 0);
    },
  };
}

/**
 * Removing webhooks and expiring deliveries. One transaction cancels a limited number of deliveries of removed webhooks;
 * the rest is canceled in the background. If the process ends before that, `expire` cancels them.
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
      // Harmless: deliveries of removed webhooks are never loaded, canceled or not.
    } finally {
      isCanceling = false;
    }
  }

  return {
    /**
     * Removes webhooks: nothing more is sent to them, and their waiting deliveries are canceled, a large backlog in the
     * background. Returns the number of removed webhooks.
     */
    async unsubscribe(input: { teamId: string; ids: readonly string[] }): Promise<number> {
      const { removed, more } = await webhooks.unsubscribe(input);
      if (more) void cancelTheRest();
      return removed;
    },
    /**
     * Stores the outcomes of attempts, all in one transaction. A success always counts. Any other outcome counts only if
     * the delivery has had exactly `attempt - 1` attempts and the lane still has this `epoch`.
     */
    async settle({ settlements }: { settlements: readonly Settlement[] }): Promise<void> {
      if ((await deliveries.settle({ rows: settlements.map(settlementRow) })).more) void cancelTheRest();
    },
    /**
     * Marks deliveries as dead that are still waiting `olderMs` after they were created, also those of paused webhooks. A
     * delivery to an active webhook that was never attempted is kept for its first attempt, however old. At most `limit`
     * per call; call until `done`.
     */
    async expire(input: { olderMs: number; limit: number }): Promise<{ done: boolean }> {
      if (!isExpiring) void cancelTheRest();
      const { done } = await deliveries.expire(input);
      isExpiring = !done;
      return { done };
    },
  };
}
