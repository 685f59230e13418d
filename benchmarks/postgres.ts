/** A PostgreSQL for benchmarks that waits for the disk at every commit, as one that is delivered does. */
import { administer, startCluster } from '../test/support/postgres.ts';

export interface DurablePostgres {
  /** Of its database `postgres`, as a superuser. */
  url: string;
  /** Makes an empty database. Answers its URL. */
  makeDatabase(name: string): Promise<string>;
  /** Ends it, and takes all databases with it. */
  stop(): Promise<void>;
}

/** How durable it is, for what a benchmark says of itself. */
export const DURABILITY = 'fsync, synchronous_commit and full_page_writes on';

/**
 * PostgreSQL's own defaults, but for a buffer that is usual where a machine is shared. The tests' server, which this
 * one is started like, waits for nothing.
 */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  max_wal_size: '1GB',
  max_connections: '100',
};

/** Starts one in a directory of its own. Throws an Error that says what is missing. */
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
