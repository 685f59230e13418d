/** Store operations that need several transactions. They combine operations of the table. */
import type { AttemptLease } from '../model/job.ts';
import type { StagedWrites } from '../model/planned-writes.ts';
import type { CallsOf } from './operation.ts';
import { type Settlement, settlementRow } from './operations/settle.ts';
import type { OPERATIONS } from './operations/table.ts';
import type { LaneName } from './transaction.ts';

type Calls = CallsOf<Pick<typeof OPERATIONS, 'jobs' | 'records' | 'webhooks' | 'deliveries'>>;

/** Returns these groups of the table, with some of their operations replaced by those in this file. */
export function composed({ jobs, records, webhooks, deliveries }: Calls) {
  const { unsubscribe, ...ofDeliveries } = cancelingRest({ webhooks, deliveries });
  return {
    jobs: {
      ...jobs,
      /**
       * Returns attempts to the queue at shutdown. Their jobs are due immediately, and no retry is used up. Attempts
       * that are no longer running are ignored.
       */
      async release({ held }: { held: readonly AttemptLease[] }): Promise<void> {
        await Promise.all(held.map((one) => jobs.release({ held: one })));
      },
    },
    records: { ...records, ...inParts(records) },
    webhooks: { ...webhooks, unsubscribe },
    deliveries: { ...deliveries, ...ofDeliveries },
  };
}

/**
 * Stages and removes records in several transactions. Each transaction handles as many records as fit into about 1 MiB,
 * but at least one.
 */
function inParts(parts: Calls['records']) {
  return {
    /**
     * Writes one batch (at most 2,000 records and 1 MiB) under the next version. Returns the `seq` of each record, new
     * ones first, in order. The operation is idempotent, so that a call whose result was lost can be repeated. Rejects
     * with an Error if a row differs from what `compare` returned. Takes several transactions if the rows to be
     * replaced are long, or more than 500.
     */
    async stage({
      held,
      writes: { inserts, changes },
    }: {
      held: AttemptLease;
      writes: StagedWrites;
    }): Promise<{ seqs: number[] }> {
      const { seqs, handled } = await parts.stage({ held, writes: { inserts, changes } });
      for (let left = changes.slice(handled); left.length > 0; ) {
        const part = await parts.stage({ held, writes: { inserts: null, changes: left } });
        left = left.slice(part.handled);
      }
      return { seqs: [...seqs, ...changes.map(({ seq }) => seq)] };
    },
    /**
     * Marks records of the current version (at most 2,000) as removed in the next version, except records that this run
     * has written. Takes several transactions if the records are long.
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
 * Removes webhooks. One transaction cancels only a limited number of their deliveries; the remaining ones are canceled
 * in the background. If the process ends before they are canceled, `store/retention` cancels them.
 */
function cancelingRest({ webhooks, deliveries }: Pick<Calls, 'webhooks' | 'deliveries'>) {
  /** Teams whose deliveries are being canceled. */
  const canceling = new Set<string>();

  async function cancelTheRest(teamId: string): Promise<void> {
    if (canceling.has(teamId)) return;
    canceling.add(teamId);
    try {
      while (!(await deliveries.cancelRemoved({ teamId })).done);
    } catch {
      // A failure here is harmless, because deliveries of removed webhooks are never loaded, even if they are not
      // canceled.
    } finally {
      canceling.delete(teamId);
    }
  }

  return {
    /**
     * Removes webhooks. Nothing more is sent to them, and their waiting deliveries are canceled; a large backlog is
     * canceled in the background. Returns the number of removed webhooks.
     */
    async unsubscribe(input: { teamId: string; ids: readonly string[] }): Promise<number> {
      const { removed, more } = await webhooks.unsubscribe(input);
      if (more) void cancelTheRest(input.teamId);
      return removed;
    },
    /**
     * Stores the outcomes of attempts, all in one transaction. A success always counts. Any other outcome counts only
     * if the delivery has had exactly `attempt - 1` attempts and the lane still has the given `epoch`.
     */
    async settle({ settlements }: { settlements: readonly Settlement[] }): Promise<void> {
      const { more } = await deliveries.settle({ rows: settlements.map(settlementRow) });
      if (!more) return;
      for (const teamId of new Set(settlements.map((one) => one.teamId))) void cancelTheRest(teamId);
    },
    /**
     * Advances running replays by up to `limit` deliveries, one webhook per transaction. Skips webhooks that already
     * have `waiting` replayed deliveries due, except ordered webhooks. Call with `after: next` until `done`, and again
     * periodically. `done` means that a whole round through the webhooks found nothing to do.
     */
    async stepReplays({
      limit,
      waiting,
      after,
    }: {
      limit: number;
      waiting: number;
      after?: ReplayPlace | undefined;
    }): Promise<{ done: boolean; next?: ReplayPlace | undefined }> {
      const lanes = await deliveries.replaying({ after, limit: MAX_WEBHOOKS });
      let room = limit;
      let moved = after?.moved ?? false;
      for (const lane of lanes) {
        const visited = await deliveries.stepReplay({ ...lane, limit: room, waiting });
        room -= visited;
        moved ||= visited > 0;
        if (room <= 0) return { done: false, next: { ...lane, moved } };
      }
      const last = lanes.at(-1);
      if (last === undefined || lanes.length < MAX_WEBHOOKS) return { done: !moved };
      return { done: false, next: { ...last, moved } };
    },
  };
}

/** Maximum number of webhooks that one step of replays visits. */
const MAX_WEBHOOKS = 25;

/** The last webhook that was visited, and whether this round has advanced any replay. */
interface ReplayPlace extends LaneName {
  moved: boolean;
}
