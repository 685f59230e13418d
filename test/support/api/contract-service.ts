/** The service for the tests of the contract: in this process, or an installed program in its own process. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Team } from '../../../src/model/team.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { startServerProcess } from '../server-process.ts';
import { startService } from '../service.ts';
import { onPostgres, type TestDatabase, testDatabase } from '../test-database.ts';

export interface ContractService {
  url: string;
  /** A key of team `default` with every scope. */
  key: string;
  team: Team;
  /** The service's store; for an installed program, a store of this process on the same database. */
  store: Store;
  database: TestDatabase;
  directory: string;
  /** Closes the database of the running service. Not for an installed program. */
  closeDatabase?(): Promise<void>;
  stop(): Promise<unknown>;
}

const KEY = 'key-of-the-installed-service';

/** @param installed the `flowhook.js` of an installation; default: the service of the repository */
export async function startContractService(
  options: { workflows: Record<string, string>; settings: Record<string, string> },
  installed: string | undefined,
): Promise<ContractService> {
  if (installed !== undefined) return startInstalled(installed, options);
  const service = await startService(options);
  return {
    ...service,
    async closeDatabase() {
      await service.engine.stop();
      await service.store.close();
    },
  };
}

async function startInstalled(
  program: string,
  options: { workflows: Record<string, string>; settings: Record<string, string> },
): Promise<ContractService> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-contract-'));
  const workflows = join(directory, 'workflows');
  for (const [path, text] of Object.entries(options.workflows)) {
    await mkdir(dirname(join(workflows, path)), { recursive: true });
    await writeFile(join(workflows, path), text);
  }
  const database = await testDatabase(directory);
  const server = await startServerProcess(
    {
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: workflows,
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
      ...database.settings,
      ...options.settings,
    },
    { program },
  );
  const store = await openStore(database.url, {
    publicUrl: () => server.url,
    log: silentLogger,
    // On PostgreSQL, only the store of a node is notified of changes by other nodes.
    own: onPostgres(),
  });
  const team = await store.teams.bySlug({ slug: 'default' });
  if (team === undefined) throw new Error('The service has not created a team');
  return {
    url: server.url,
    key: KEY,
    team,
    store,
    database,
    directory,
    async stop() {
      await store.close();
      await server.stop();
      await database.drop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
