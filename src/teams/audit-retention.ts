/** Deletes lines of the audit once they are older than they are kept. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 10 * 60_000;
const STEPS = { first: 50, max: 1_000 };

export function auditRetention(options: {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
  keepMs: number;
}): Chore {
  const { store, log, random, nodeId, keepMs } = options;
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'audit.prune', nodeId }, (signal) =>
      inSteps((limit) => store.audit.prune({ olderMs: keepMs, limit }), STEPS, signal),
    ),
    failed: (err) => log.error({ err }, 'audit.not_pruned'),
  });
}
