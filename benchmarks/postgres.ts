/** A PostgreSQL server for benchmarks that waits for the disk at every commit, as with default settings. */
import { administer, startCluster } from '../test/support/postgres.ts';
import type { Benchmark, Contestant } from './benchmark.ts';

export interface DurablePostgres {
  /** The URL of its database `postgres`, as a superuser. */
  url: string;
  /** Creates an empty database and returns its URL. */
  makeDatabase(name: string): Promise<string>;
  /** Stops the server and deletes all its databases. */
  stop(): Promise<void>;
}

/** Its durability, for descriptions of benchmarks. */
export const DURABILITY = 'fsync, synchronous_commit and full_page_writes on';

/**
 * PostgreSQL's defaults, except for a larger buffer. Unlike this server, that of the tests does not wait for the disk.
 */
export const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  max_wal_size: '1GB',
  max_connections: '100',
};

/**
 * Starts a server in its own directory.
 *
 * @throws Error that names what is missing
 */
export async function startDurablePostgres(): Promise<DurablePostgres> {
  const { url, stop } = await startCluster(SETTINGS);
  return {
    url,
    async makeDatabase(name) {
      await administer(url, `create database ${name}`);
      const made = new URL(url);
      made.pathname = `/${name}`;
      return made.href;
    },
    stop,
  };
}

/**
 * Flowhook on SQLite, and with `--full` on PostgreSQL.
 *
 * @param make starts a contestant with a PostgreSQL URL, or without one on SQLite
 */
export async function onBoth(
  full: boolean,
  make: (name: string, database?: string) => Promise<Contestant & { stop(): Promise<void> }>,
): ReturnType<Benchmark['setUp']> {
  const contestants = [await make('flowhook')];
  const postgres = full ? await startDurablePostgres() : undefined;
  if (postgres !== undefined)
    contestants.push(await make('flowhook, PostgreSQL', await postgres.makeDatabase('flowhook')));
  return {
    contestants,
    skipped: full ? [] : ['PostgreSQL, which --full adds.'],
    async tearDown() {
      for (const one of contestants) await one.stop();
      await postgres?.stop();
    },
  };
}
