/** Runs jobs in the process of a command that owns the database, without a server. */
import type { Config } from '../config/config.ts';
import { runSecrets } from '../definitions/secrets.ts';
import { Engine } from '../jobs/engine.ts';
import { silentLogger } from '../observe/log.ts';
import { Ingester } from '../records/ingester.ts';
import { loadSuppression } from '../records/suppress.ts';
import type { Store } from '../store/store.ts';
import { openSealer } from '../teams/encryption-key.ts';

/** All owners of an SQLite database use this node id, so that each owner recovers the jobs of the previous owner. */
const NODE_ID = 'local';

export interface CommandEngine {
  /** Recovers jobs that were running when a server was killed. */
  reap(): Promise<void>;
  start(): Promise<void>;
  /** Releases jobs that are still running. This method may be called before the start. */
  stop(): Promise<void>;
}

export async function openEngine(config: Config, store: Store): Promise<CommandEngine> {
  const sealer = await openSealer(config, store);
  const ingester = new Ingester({
    databaseUrl: config.databaseUrl,
    log: silentLogger,
    suppression: (at) => loadSuppression({ store, sealer }, at),
  });
  const engine = new Engine({
    store,
    ingester,
    log: silentLogger,
    observer: {},
    workflowsDirectory: config.workflowsDirectory,
    environment: config.environment,
    secrets: (team, workflow) =>
      runSecrets(workflow, { directory: config.workflowsDirectory, team, environment: config.environment }),
    random: Math.random,
    nodeId: NODE_ID,
    ceilings: config.ceilings,
    capacity: config.maxRunningJobs,
    perTeam: config.maxRunningJobsPerTeam,
    fetchPolicy: config.allowNetworks,
    runAs: config.runAs,
  });
  return {
    reap: () => engine.reap({ nodeId: NODE_ID }),
    start: () => engine.start(),
    async stop() {
      await engine.stop();
      await ingester.close();
    },
  };
}
