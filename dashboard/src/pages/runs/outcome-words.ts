/** The notification after an action on several runs. */
import type { Notice } from '../../parts/action.tsx';
import { many } from '../../parts/format.ts';

export interface Outcome {
  done: number;
  /** The number of failed calls, and the reason of the first. */
  failed: { count: number; why: string | undefined };
}

/** `3 runs queued, 1 failed: …`. */
export function outcomeWords(verb: string, { done, failed }: Outcome): Notice {
  if (failed.count === 0) return `${many(done, 'run')} ${verb}`;
  if (done === 0) return { nothing: `No runs ${verb}: ${failed.why}` };
  return `${many(done, 'run')} ${verb}, ${failed.count} failed: ${failed.why}`;
}
