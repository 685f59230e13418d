/** Builds the working parts of a node: deliveries, ingestion, cached bodies, pushes, jobs, schedules, chores. */
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { LocalFiles } from '../definitions/local-files.ts';
import { runSecrets } from '../definitions/secrets.ts';
import { Engine } from '../jobs/engine.ts';
import { freshnessChecking } from '../jobs/freshness.ts';
import { Leases } from '../jobs/leases.ts';
import { PushJobs } from '../jobs/push-job.ts';
import { createScheduler } from '../jobs/schedule.ts';
import { createTeamDispatchers } from '../net/dispatcher.ts';
import { createResolver } from '../net/resolver.ts';
import type { Logger } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { Tracing } from '../observe/tracing.ts';
import { BodyCache } from '../records/body-cache.ts';
import { BodyWriter } from '../records/body-writer.ts';
import { Ingester } from '../records/ingester.ts';
import { loadSuppression } from '../records/suppress.ts';
import type { Chore } from '../std/chore.ts';
import type { Sealer } from '../std/seal.ts';
import type { StopOrder } from '../std/stop-order.ts';
import { USER_AGENT } from '../std/version.ts';
import { backupSchedule } from '../store/backup-schedule.ts';
import { auditRetention, deletionResumption, sessionRetention, teamRetention } from '../store/retention.ts';
import type { Store } from '../store/store.ts';
import { usageCounting } from '../teams/usage.ts';
import { DeliveryEngine } from '../webhooks/delivery-engine.ts';
import { createMailing } from '../webhooks/mail/mailing.ts';
import { webhookReplay } from '../webhooks/replay.ts';
import { ExaminerThread } from '../webhooks/rules/examiner.ts';
import { RuleEngine } from '../webhooks/rules/rule-engine.ts';
import { withVersions } from './foundation.ts';

/**
 * Builds the parts, but starts only the cache of bodies. The caller starts the parts that the node's role needs, and
 * stops deliveries, jobs and schedules while it finishes requests in flight. All other parts are registered in
 * `started`.
 *
 * @param input.files the workflow files of this node. Undefined on SQLite, where the node applies all of its files
 * @param input.leaseMs the duration of leases of running jobs and of lanes (undefined: the default)
 */
export async function buildCapabilities(
  config: Config,
  input: {
    store: Store;
    nodeId: string;
    sealer: Sealer;
    log: Logger;
    observer: Observer;
    tracing: Tracing | undefined;
    files: LocalFiles | undefined;
    random: () => number;
    leaseMs: number | undefined;
    publicUrl: () => string;
    started: StopOrder;
  },
) {
  const { store, nodeId, sealer, log, observer, tracing, files, random, publicUrl, started } = input;
  const lease = input.leaseMs === undefined ? {} : { leaseMs: input.leaseMs };
  const { ceilings } = config;
  const resolver = createResolver();
  const dispatchers = createTeamDispatchers({ policy: config.allowNetworks, resolver });
  started.push(() => dispatchers.destroy());
  const mailing = createMailing(config, { sealer, resolver, publicUrl, now: () => store.now() });
  started.push(() => mailing.close());
  const deliveryEngine = new DeliveryEngine({
    store,
    sealer,
    dispatchers,
    mailing,
    log,
    observer,
    tracing,
    userAgent: USER_AGENT,
    nodeId,
    ...lease,
    random,
  });
  const { databaseUrl } = config;
  const ruleEngine = new RuleEngine({ store, databaseUrl, publicUrl, log, observer, random, nodeId });
  started.push(() => ruleEngine.stop(), 'decisions about webhooks');
  const examiner = new ExaminerThread({ store, databaseUrl, publicUrl, log });
  started.push(() => examiner.stop());
  const ingester = new Ingester({
    databaseUrl: config.databaseUrl,
    log,
    suppression: (at) => loadSuppression({ store, sealer }, at),
  });
  started.push(() => ingester.close(), 'the reading of records');
  const bodies = new BodyCache({
    store,
    writer: new BodyWriter({ databaseUrl: config.databaseUrl, log }),
    directory: join(config.dataDirectory, 'representations'),
    maxBytes: config.representationCacheMb * 1_048_576,
    log,
  });
  await bodies.start();
  started.push(() => bodies.stop(), 'responses being cached');
  const followed = withVersions(observer, (version) => void bodies.buildAhead(version));
  const leases = new Leases({ store, log, nodeId, ...lease });
  const pushes = new PushJobs({ store, ingester, log, observer: followed, nodeId, leases, random, ceilings });
  started.push(() => pushes.stop(), 'pushes');
  const engine = new Engine({
    store,
    ingester,
    log,
    observer: followed,
    tracing,
    leases,
    workflowsDirectory: config.workflowsDirectory,
    environment: config.environment,
    secrets: (slug, workflow) =>
      runSecrets(workflow, {
        directory: config.workflowsDirectory,
        team: slug,
        environment: config.environment,
      }),
    random,
    fetchPolicy: config.allowNetworks,
    runAs: config.runAs,
    nodeId,
    ceilings,
    except: () => files?.foreign ?? [],
    ...(files === undefined ? {} : { runsHere: (workflow) => files.has(workflow) }),
    capacity: config.maxRunningJobs,
    perTeam: config.maxRunningJobsPerTeam,
  });
  const scheduler = createScheduler({ store, log, random, tracing });
  const forget = (place: { teamId: string; workflowId: string }) => bodies.forget(place);
  const chores = createChores({ config, store, log, random, nodeId, forget, started });
  return {
    resolver,
    mailing,
    deliveryEngine,
    ruleEngine,
    examiner,
    bodies,
    pushes,
    engine,
    scheduler,
    forget,
    chores,
  };
}

const DAY_MS = 24 * 3_600_000;

/** Creates the chores of all roles, without starting them, and registers them to be stopped. */
function createChores(input: {
  config: Config;
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
  /** Removes the cached response bodies of a deleted workflow. */
  forget(place: { teamId: string; workflowId: string }): Promise<void>;
  started: StopOrder;
}): { start(has: (role: 'api' | 'worker' | 'sender') => boolean): void } {
  const { config, store, forget, started } = input;
  const deps = { store, log: input.log, random: input.random, nodeId: input.nodeId };
  const byRole: Record<'api' | 'worker' | 'sender', Pick<Chore, 'start' | 'stop'>[]> = {
    sender: [
      webhookReplay(deps),
      teamRetention(deps, {
        keepJobs: config.keepJobs,
        jobsMs: config.keepJobsDays * DAY_MS,
        attemptsMs: config.keepAttemptsDays * DAY_MS,
        eventsMs: config.keepEventsDays * DAY_MS,
        auditMs: config.keepAuditDays * DAY_MS,
      }),
      usageCounting(deps),
      freshnessChecking(deps),
      deletionResumption(deps, forget),
    ],
    worker: [],
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
