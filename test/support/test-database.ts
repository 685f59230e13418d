/**
 * The database of a test's service: SQLite in its directory, PostgreSQL with `FLOWHOOK_TEST_STORE=postgres`, or a
 * distributed database with `FLOWHOOK_TEST_STORE=citus`.
 */
import { join } from 'node:path';
import { distributedDatabase } from './citus.ts';
import { administer, makeDatabase } from './postgres.ts';

export interface TestDatabase {
  url: string;
  /** The settings for the database. */
  settings: Record<string, string>;
  /** Allows or refuses connections (PostgreSQL only). */
  letIn(allowed: boolean): Promise<void>;
  /** Deletes the database. A SQLite file is deleted with its directory. */
  drop(): Promise<void>;
}

const KEY = 'ab'.repeat(32);

export function onPostgres(): boolean {
  return ['postgres', 'citus'].includes(process.env.FLOWHOOK_TEST_STORE ?? '');
}

/** A database that the test itself has made and drops. */
export function givenDatabase(url: string): TestDatabase {
  return {
    url,
    settings: {},
    letIn: () => Promise.reject(new Error('The test has made this database itself')),
    drop: async () => {},
  };
}

/** The database of services with the data directory `<directory>/data`. */
export async function testDatabase(directory: string): Promise<TestDatabase> {
  if (!onPostgres()) {
    return {
      url: `sqlite:${join(directory, 'data', 'flowhook.db')}`,
      settings: {},
      letIn: async () => {},
      drop: async () => {},
    };
  }
  const isCitus = process.env.FLOWHOOK_TEST_STORE === 'citus';
  const { url, server, name, drop } = await (isCitus ? distributedDatabase() : makeDatabase());
  const { FLOWHOOK_DATABASE_LISTEN: listen = 'on' } = process.env;
  return {
    url,
    settings: { FLOWHOOK_DATABASE: url, FLOWHOOK_ENCRYPTION_KEY: KEY, FLOWHOOK_DATABASE_LISTEN: listen },
    async letIn(allowed) {
      await administer(server, `alter database ${name} with allow_connections ${allowed}`);
      if (allowed) return;
      await administer(
        server,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
      );
    },
    drop,
  };
}
