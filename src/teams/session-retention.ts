/** Deletes sessions of the dashboard, and links that begin one, once they have expired. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 10 * 60_000;
const STEPS = { first: 50, max: 1_000 };

export function sessionRetention(options: {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
}): Chore {
  const { store, log, random, nodeId } = options;
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'sessions.prune', nodeId }, (signal) =>
      inSteps((limit) => store.sessions.prune({ limit }), STEPS, signal),
    ),
    failed: (err) => log.error({ err }, 'sessions.not_pruned'),
  });
}
