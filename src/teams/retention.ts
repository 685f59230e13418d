/** Deletes old lines of the audit, and expired sessions of the dashboard. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 10 * 60_000;
const STEPS = { first: 50, max: 1_000 };

interface ChoreDeps {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
}

/** @param options.keepMs how long lines of the audit are kept */
export function auditRetention(options: ChoreDeps & { keepMs: number }): Chore {
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

/** Also deletes expired links that begin a session. */
export function sessionRetention({ store, log, random, nodeId }: ChoreDeps): Chore {
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'sessions.prune', nodeId }, (signal) =>
      inSteps((limit) => store.sessions.prune({ limit }), STEPS, signal),
    ),
    failed: (err) => log.error({ err }, 'sessions.not_pruned'),
  });
}
