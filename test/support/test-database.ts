/** Which database the service of a test uses: SQLite in its directory, or with `FLOWHOOK_TEST_STORE=postgres` one there. */
import { join } from 'node:path';
import { administer, makeDatabase } from './postgres.ts';

export interface TestDatabase {
  url: string;
  /** What the settings say of it. */
  settings: Record<string, string>;
  /** Whether nobody reaches it, from now on. Only of PostgreSQL. */
  letIn(allowed: boolean): Promise<void>;
  /** Takes it away; what lies in the directory goes with that. */
  drop(): Promise<void>;
}

const KEY = 'ab'.repeat(32);

export function onPostgres(): boolean {
  return process.env.FLOWHOOK_TEST_STORE === 'postgres';
}

/** A database that the test has made itself, and drops. */
export function givenDatabase(url: string): TestDatabase {
  return {
    url,
    settings: {},
    letIn: () => Promise.reject(new Error('It is not ours')),
    drop: async () => {},
  };
}

/** The database of services that keep their data below a directory: `<directory>/data`. */
export async function testDatabase(directory: string): Promise<TestDatabase> {
  if (!onPostgres()) {
    return {
      url: `sqlite:${join(directory, 'data', 'flowhook.db')}`,
      settings: {},
      letIn: async () => {},
      drop: async () => {},
    };
  }
  const { url, server, name, drop } = await makeDatabase();
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
