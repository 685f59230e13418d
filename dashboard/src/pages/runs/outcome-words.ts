/** What came of doing the same with several runs. */
import type { Said } from '../../parts/action.tsx';
import { many } from '../../parts/format.ts';

export interface Outcome {
  done: number;
  /** How many were refused, and the reason of the first. */
  refused: { count: number; why: string | undefined };
}

/** `3 runs queued, 1 refused: …`; where none succeeded, why. */
export function outcomeWords(verb: string, { done, refused }: Outcome): Said {
  if (refused.count === 0) return `${many(done, 'run')} ${verb}`;
  if (done === 0) return { nothing: `No run ${verb}: ${refused.why}` };
  return `${many(done, 'run')} ${verb}, ${refused.count} refused: ${refused.why}`;
}
