/** Carries out replays of many deliveries: creates a few at a time, no faster than they are sent. */
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';

const EVERY_MS = 1_000;
/** Replayed deliveries that may wait for one webhook: only what is sent soon is created. */
const WAITING = 256;
const STEPS = { first: 32, max: 256 };

export function webhookReplay(deps: ChoreDeps): Chore {
  const { deliveries } = deps.store;
  return choreOnOneNode({
    ...deps,
    name: 'deliveries.replay',
    everyMs: EVERY_MS,
    failed: 'replays.not_stepped',
    work: (signal) => inSteps((limit) => deliveries.stepReplays({ limit, waiting: WAITING }), STEPS, signal),
  });
}
