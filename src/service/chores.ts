/** The periodic tasks of a node: retention, counting usage, replays, finishing deletions, backups. */
import type { Config } from '../config/config.ts';
import type { Logger } from '../observe/log.ts';
import type { Chore } from '../std/chore.ts';
import type { StopOrder } from '../std/stop-order.ts';
import { backupSchedule } from '../store/backup-schedule.ts';
import {
  auditRetention,
  deletionResumption,
  jobRetention,
  recordRetention,
  sessionRetention,
  webhookRetention,
} from '../store/retention.ts';
import type { Store } from '../store/store.ts';
import { usageCounting } from '../teams/usage.ts';
import { webhookReplay } from '../webhooks/replay.ts';

const DAY_MS = 24 * 3_600_000;

/** Creates the chores of all roles and registers their stops; none is started yet. */
export function createChores(input: {
  config: Config;
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
  /** Removes the cached response bodies of a workflow that was deleted. */
  forget(place: { teamId: string; workflowId: string }): Promise<void>;
  started: StopOrder;
}): { start(has: (role: 'api' | 'worker' | 'sender') => boolean): void } {
  const { config, store, forget, started } = input;
  const deps = { store, log: input.log, random: input.random, nodeId: input.nodeId };
  const byRole: Record<'api' | 'worker' | 'sender', Pick<Chore, 'start' | 'stop'>[]> = {
    sender: [
      webhookReplay(deps),
      webhookRetention(deps, {
        attemptsMs: config.keepAttemptsDays * DAY_MS,
        eventsMs: config.keepEventsDays * DAY_MS,
      }),
      usageCounting(deps),
      deletionResumption(deps, forget),
    ],
    worker: [
      recordRetention(deps),
      jobRetention(deps, { keepJobs: config.keepJobs, keepMs: config.keepJobsDays * DAY_MS }),
    ],
    api: [sessionRetention(deps), auditRetention(deps, config.keepAuditDays * DAY_MS)],
  };
  const backups =
    config.backupEveryMs === null
      ? undefined
      : backupSchedule({
          databaseUrl: config.databaseUrl,
          copyTo: store.copyTo,
          directory: config.backupDirectory,
          everyMs: config.backupEveryMs,
          keep: config.backupKeep,
          clock: () => store.now(),
          log: input.log,
          random: input.random,
        });
  for (const chore of Object.values(byRole).flat()) started.push(() => chore.stop());
  started.push(() => backups?.stop(), 'a backup');
  return {
    start(has) {
      for (const role of ['sender', 'worker', 'api'] as const) {
        if (has(role)) for (const chore of byRole[role]) chore.start();
      }
      backups?.start();
    },
  };
}
