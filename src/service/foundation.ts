/** Opens what a node needs in every role: directories, the database, keys, a team, and observation. */
import { statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { localAuthor } from '../model/audit.ts';
import { EVENT_TYPES } from '../model/event.ts';
import { FAILURE_REASONS } from '../model/job.ts';
import { DEFAULT_TEAM, type Team } from '../model/team.ts';
import type { Logger } from '../observe/log.ts';
import { Metrics } from '../observe/metrics.ts';
import { type Observer, observeAll } from '../observe/observer.ts';
import { startTracing } from '../observe/tracing.ts';
import { wideLines } from '../observe/wide-lines.ts';
import { workMetrics } from '../observe/work-metrics.ts';
import type { Clock } from '../std/clock.ts';
import { newId } from '../std/id.ts';
import { makeDirectory } from '../std/make-directory.ts';
import type { Sealer } from '../std/seal.ts';
import type { StopOrder } from '../std/stop-order.ts';
import { authoredBy } from '../store/audited.ts';
import { openStore, ownDirectory } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { openSealer } from '../teams/encryption-key.ts';
import { Authenticator, storeBootstrapKey } from '../teams/keys.ts';
import { LastUsed } from '../teams/usage.ts';

/** The id of the only node on SQLite, where a single process uses the database. */
const SOLE_NODE = 'local';

export interface Foundation {
  store: Store;
  /** The store for changes that the start itself makes. The audit log names the service as their author. */
  serviceStore: Store;
  nodeId: string;
  sealer: Sealer;
  lastUsed: LastUsed;
  authenticator: Authenticator;
  /** The team `default`. */
  team: Team;
}

/**
 * @param input.isShared whether other nodes use the database as well (PostgreSQL)
 * @param input.started collects the opened parts, which are closed in reverse order
 * @throws Error with a sentence that says what prevents the start: another server on the same data, a newer schema, a
 *   different encryption key
 */
export async function openFoundation(
  config: Config,
  input: {
    log: Logger;
    clock: Clock | undefined;
    random: () => number;
    publicUrl: () => string;
    isShared: boolean;
    servesApi: boolean;
    started: StopOrder;
  },
): Promise<Foundation> {
  const { log, clock, random, publicUrl, isShared, started } = input;
  makeDirectory(config.dataDirectory);
  for (const directory of [config.dataDirectory, config.backupDirectory]) {
    const { mode = 0 } = statSync(directory, { throwIfNoEntry: false }) ?? {};
    if ((mode & 0o077) === 0) continue;
    log.warn(
      { directory },
      'directory.open_to_others: other users can read the data of teams. Run `chmod 700` on it',
    );
  }
  if (isShared) {
    const owned = await ownDirectory(config.dataDirectory);
    started.push(() => owned.release());
  }
  const store = await openStore(config.databaseUrl, {
    own: true,
    publicUrl,
    log,
    poolSize: config.databasePool,
    quotas: config.quotas,
    listen: config.databaseListen,
    ...(clock === undefined ? {} : { clock }),
  });
  started.push(() => store.close(), 'the database');
  // On PostgreSQL each process has a new id. The jobs of a crashed node are therefore recovered when their leases
  // expire.
  const nodeId = isShared ? newId('node', store.now()) : SOLE_NODE;

  const sealer = await openSealer(config, store);
  const serviceStore = authoredBy(store, localAuthor('service'));
  const lastUsed = new LastUsed({ store, log, random });
  started.push(() => lastUsed.stop());
  const authenticator = new Authenticator(store, lastUsed);
  started.push(() => authenticator.close());
  const team = await serviceStore.teams.ensure({ slug: DEFAULT_TEAM });
  const { bootstrapKey } = config;
  if (bootstrapKey !== undefined && input.servesApi) {
    await storeBootstrapKey(serviceStore, { team, key: bootstrapKey });
  }
  return { store, serviceStore, nodeId, sealer, lastUsed, authenticator, team };
}

/** @returns metrics and tracing are undefined if they are off */
export async function startObservation(config: Config, log: Logger) {
  const metrics = config.metrics ? new Metrics() : undefined;
  const known = { eventTypes: EVENT_TYPES, reasons: FAILURE_REASONS };
  const counted = metrics === undefined ? [] : [workMetrics(metrics, known)];
  const tracing = config.tracing === null ? undefined : await startTracing(config.tracing, log);
  const traces = tracing === undefined ? [] : [tracing.observer];
  return {
    observer: observeAll([wideLines(log, config.logRequests), ...counted, ...traces]),
    metrics,
    tracing,
  };
}

/** Returns an observer that also calls `onVersion` whenever a job publishes a version. */
export function withVersions(
  observer: Observer,
  onVersion: (at: { teamId: string; workflowId: string }) => void,
): Required<Observer> {
  const jobAttemptDone: Observer['jobAttemptDone'] = (done) => {
    if (done.published?.outcome === 'published') onVersion(done);
  };
  return observeAll([observer, { jobAttemptDone }]);
}
