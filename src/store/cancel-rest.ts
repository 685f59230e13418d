/** Cancels what still waits for removed webhooks, where it is more than the transaction that removed them may cancel. */
import type { CallsOf } from './operation.ts';
import { settlementRow } from './operations/settle.ts';
import type { OPERATIONS } from './operations/table.ts';
import type { Store } from './store.ts';

type Calls = CallsOf<Pick<typeof OPERATIONS, 'webhooks' | 'deliveries'>>;

/**
 * Makes the operations after which something may be left. What is not got to, because the process ends, is found by the
 * chore that expires old deliveries.
 */
export function cancelingRest({ webhooks, deliveries }: Calls): {
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
