/** Carries out replays of many deliveries: creates a few at a time, no faster than they are sent. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 1_000;
/** Replayed deliveries that may wait for one webhook: only what is sent soon is created. */
const WAITING = 256;
const STEPS = { first: 32, max: 256 };

export function webhookReplay(options: {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
}): Chore {
  const { store, log, random, nodeId } = options;
  const { deliveries } = store;
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'deliveries.replay', nodeId }, (signal) =>
      inSteps((limit) => deliveries.stepReplays({ limit, waiting: WAITING }), STEPS, signal),
    ),
    failed: (err) => log.error({ err }, 'replays.not_stepped'),
  });
}
