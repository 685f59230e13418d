/** Operations of the Store that take several transactions: made of those of the table, the same on both databases. */
import type { CallsOf } from './operation.ts';
import { settlementRow } from './operations/settle.ts';
import type { OPERATIONS } from './operations/table.ts';
import type { Store } from './store.ts';

type Calls = CallsOf<Pick<typeof OPERATIONS, 'jobs' | 'records' | 'webhooks' | 'deliveries'>> & {
  records: Pick<Store['records'], 'stage'>;
};

/** Returns only those: drivers add them to the groups of their calls. */
export function composed({ jobs, records, webhooks, deliveries }: Calls) {
  const { unsubscribe, ...ofDeliveries } = cancelingRest({ webhooks, deliveries });
  return {
    jobs: {
      async release({ held }: Parameters<Store['jobs']['release']>[0]) {
        await Promise.all(held.map((one) => jobs.release({ held: one })));
      },
    },
    records: inParts(records),
    webhooks: { unsubscribe },
    deliveries: ofDeliveries,
  };
}

/** Staging and removing records: each transaction deals with the first ones, of some 1 MiB at most, one at least. */
function inParts(parts: Calls['records']): Pick<Store['records'], 'stage' | 'remove'> {
  return {
    async stage({ held, writes }) {
      const seqs: number[] = [];
      do {
        const part = await parts.stage({ held, writes: writes.slice(seqs.length) });
        seqs.push(...part.seqs);
      } while (seqs.length < writes.length);
      return { seqs };
    },
    async remove({ held, seqs }) {
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
function cancelingRest({ webhooks, deliveries }: Pick<Calls, 'webhooks' | 'deliveries'>): {
  unsubscribe: Store['webhooks']['unsubscribe'];
  settle: Store['deliveries']['settle'];
  expire: Store['deliveries']['expire'];
} {
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
    async unsubscribe(input) {
      const { removed, more } = await webhooks.unsubscribe(input);
      if (more) void cancelTheRest();
      return removed;
    },
    async settle({ settlements }) {
      if ((await deliveries.settle({ rows: settlements.map(settlementRow) })).more) void cancelTheRest();
    },
    async expire(input) {
      if (!isExpiring) void cancelTheRest();
      const { done } = await deliveries.expire(input);
      isExpiring = !done;
      return { done };
    },
  };
}
