/**
 * A Citus cluster for tests: a coordinator and two workers, started from an installed PostgreSQL with the extension.
 * Tests are skipped where there is none, and unless `FLOWHOOK_TEST_STORE=citus` asks for them.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '../../src/observe/log.ts';
import { openDistribution, openStore } from '../../src/store/open.ts';
import { administer, type Cluster, startCluster } from './postgres.ts';

/** The variable with the directory of the programs of a PostgreSQL that has the extension. */
const PROGRAMS_VARIABLE = 'FLOWHOOK_TEST_CITUS';
/** Where Debian and its relatives install PostgreSQL, one directory per version. */
const INSTALLED = '/usr/lib/postgresql';
const PROGRAMS = findPrograms();
/** Whether a cluster can be started here. */
export const HAS_CITUS = PROGRAMS !== undefined;

/** The reason why no cluster can be started here; false if it can. */
export const WITHOUT_CITUS: string | false =
  PROGRAMS === undefined &&
  `no installed PostgreSQL has the extension Citus: name its directory of programs with ${PROGRAMS_VARIABLE}`;

/** The reason why tests on Citus are skipped, for `skip`; false if they run. */
export const NO_CITUS: string | false =
  process.env.FLOWHOOK_TEST_STORE === 'citus' ? WITHOUT_CITUS : 'it runs with FLOWHOOK_TEST_STORE=citus';

/** A database on the nodes of a cluster, and its URL on the coordinator. */
export interface CitusDatabase {
  url: string;
  /** The same database on each worker. */
  workers: string[];
  /** The server, as its superuser, and the database's name. */
  server: string;
  name: string;
  drop(): Promise<void>;
}

export interface CitusCluster {
  coordinator: Cluster;
  workers: readonly Cluster[];
  /** Makes a database whose nodes know each other. It has no tables; `template` is a database to copy instead. */
  makeDatabase(template?: string): Promise<CitusDatabase>;
  /** Makes a database with all tables, distributed. */
  makeDistributed(): Promise<CitusDatabase>;
  stop(): Promise<void>;
}

/** Few, because every table of a test has them. */
const SHARDS = 4;
const SETTINGS = {
  shared_preload_libraries: 'citus,pg_stat_statements',
  max_prepared_transactions: '200',
  wal_level: 'logical',
  log_min_messages: 'error',
  log_line_prefix: '%m [%p] %v ',
  ssl: 'off',
};
const WORKERS = 2;
const TEMPLATE = 'flowhook_citus';

/** Starts a cluster of its own. @param settings of each of its servers */
export async function startCitus(settings: Record<string, string> = {}): Promise<CitusCluster> {
  if (PROGRAMS === undefined) throw new Error(String(WITHOUT_CITUS));
  const nodes = await Promise.all(
    Array.from({ length: 1 + WORKERS }, () => startCluster({ ...SETTINGS, ...settings }, PROGRAMS)),
  );
  const [coordinator, ...workers] = nodes as [Cluster, ...Cluster[]];
  const onEach = (run: (url: string) => Promise<void>) =>
    Promise.all(nodes.map(({ url }) => run(url))).then(() => undefined);
  await onEach(async (url) => {
    await administer(url, `create database ${TEMPLATE}`);
    await administer(at(url, TEMPLATE), 'create extension citus; create extension pg_stat_statements');
  });
  // A node that moves shards connects to itself as well.
  for (const { url, place } of nodes) {
    await administer(url, `alter system set citus.local_hostname = '${place}'`);
    await administer(url, 'select pg_reload_conf()');
  }
  const others = workers.map(({ place }) => `select citus_add_node('${place}', 5432)`);
  await administer(
    at(coordinator.url, TEMPLATE),
    [`select citus_set_coordinator_host('${coordinator.place}', 5432)`, ...others].join('; '),
  );
  let made = 0;
  let distributed: Promise<CitusDatabase> | undefined;
  const cluster: CitusCluster = {
    coordinator,
    workers,
    async makeDatabase(template = TEMPLATE) {
      made += 1;
      const name = `flowhook_test_${process.pid}_${made}`;
      await onEach((url) => copyDatabase(url, template, name));
      return {
        url: at(coordinator.url, name),
        workers: workers.map(({ url }) => at(url, name)),
        server: coordinator.url,
        name,
        drop: () => onEach((url) => administer(url, `drop database if exists ${name} with (force)`)),
      };
    },
    async makeDistributed() {
      // The tables are distributed once and copied then, which takes a sixth of the time.
      distributed ??= cluster.makeDatabase().then(distribute);
      return cluster.makeDatabase((await distributed).name);
    },
    stop: () => Promise.all(nodes.map((node) => node.stop())).then(() => undefined),
  };
  return cluster;
}

/** A database with the same tables, and the same knowledge of the other nodes. Citus keeps a connection to each. */
async function copyDatabase(server: string, template: string, name: string): Promise<void> {
  await administer(server, `alter database ${template} with allow_connections false`);
  await administer(
    server,
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${template}'`,
  );
  await administer(server, `create database ${name} template ${template}`);
}

let shared: Promise<CitusCluster> | undefined;

/** The cluster of this process, which is stopped when the process ends. */
export function testCitus(): Promise<CitusCluster> {
  shared ??= startCitus();
  return shared;
}

/** Makes a database of the cluster of this process, with all tables distributed. */
export async function distributedDatabase(): Promise<CitusDatabase> {
  return (await testCitus()).makeDistributed();
}

async function distribute(database: CitusDatabase): Promise<CitusDatabase> {
  const options = { publicUrl: () => '', log: silentLogger, listen: false };
  await (await openStore(database.url, options)).close();
  const distribution = await openDistribution(database.url, { log: silentLogger });
  await distribution.move({ to: 'nodes', shards: SHARDS, onMoved: () => undefined });
  await distribution.close();
  return database;
}

function at(url: string, database: string): string {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
}

/** The directory of the programs of a PostgreSQL with Citus; undefined if there is none. */
function findPrograms(): string | undefined {
  const given = process.env[PROGRAMS_VARIABLE] ?? '';
  if (given !== '') return given;
  const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED) : [];
  const places = versions.map((version) => join(INSTALLED, version, 'bin'));
  return [...places, reported('pg_config', '--bindir')].find(
    (place) =>
      place !== undefined &&
      existsSync(join(place, 'postgres')) &&
      existsSync(join(reported(join(place, 'pg_config'), '--sharedir') ?? '', 'extension/citus.control')),
  );
}

/** What `pg_config` says; undefined if there is no such program. */
function reported(program: string, option: string): string | undefined {
  try {
    return execFileSync(program, [option], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
