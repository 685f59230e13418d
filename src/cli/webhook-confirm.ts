/** What is asked before something of a webhook is destroyed. */
import { grouped } from '../std/amounts.ts';
import { confirm } from './confirm.ts';
import type { Options } from './settings.ts';

/** How many waiting deliveries are counted at most. */
export const MOST_COUNTED = 1_000;

interface Named {
  id: string;
  url: string;
}

/**
 * @param waiting counts its waiting deliveries, up to one more than `MOST_COUNTED`
 * @throws UsageError unless the user agrees
 */
export async function confirmUnsubscribing(
  options: Options,
  webhook: Named,
  waiting: () => Promise<number>,
): Promise<void> {
  if (options.yes === true) return;
  const count = await waiting();
  const few = `${grouped(Math.min(count, MOST_COUNTED))} waiting ${count === 1 ? 'delivery' : 'deliveries'}`;
  const more = count > MOST_COUNTED ? ' or more' : '';
  await confirm(options, {
    what:
      `The webhook ${namesOf(webhook)} will be removed for good, with its secret and ` +
      (count === 0 ? 'no waiting deliveries' : `${few}${more}, which will not be sent`),
    otherwise: 'nothing was removed',
  });
}

/** Asks only where the old secret ends at once. @throws UsageError unless the user agrees */
export async function confirmRotating(options: Options, webhook: Named, overlapHours: number): Promise<void> {
  if (overlapHours > 0) return;
  await confirm(options, {
    what:
      `The secret of the webhook ${namesOf(webhook)} will end at once: its receiver refuses every delivery until it ` +
      'has the new one (--overlap-hours lets both sign for a while)',
    otherwise: 'the secret stays as it is',
  });
}

function namesOf({ id, url }: Named): string {
  return `${id} (${url})`;
}
