/** Deletes old lines of the audit, and expired sessions of the dashboard. */
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';

const EVERY_MS = 10 * 60_000;
const STEPS = { first: 50, max: 1_000 };

/** @param options.keepMs how long lines of the audit are kept */
export function auditRetention(options: ChoreDeps & { keepMs: number }): Chore {
  const { store, keepMs } = options;
  return choreOnOneNode({
    ...options,
    name: 'audit.prune',
    everyMs: EVERY_MS,
    failed: 'audit.not_pruned',
    work: (signal) => inSteps((limit) => store.audit.prune({ olderMs: keepMs, limit }), STEPS, signal),
  });
}

/** Also deletes expired links that begin a session. */
export function sessionRetention(deps: ChoreDeps): Chore {
  return choreOnOneNode({
    ...deps,
    name: 'sessions.prune',
    everyMs: EVERY_MS,
    failed: 'sessions.not_pruned',
    work: (signal) => inSteps((limit) => deps.store.sessions.prune({ limit }), STEPS, signal),
  });
}
