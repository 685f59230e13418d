/** Starts the real service for a test, with its own data directory, port and workflows. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readConfig } from '../../src/config/config.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';
import { type Service, startService as start } from '../../src/service/service.ts';
import type { Clock } from '../../src/std/clock.ts';
import { atEnd } from './at-end.ts';
import { givenDatabase, type TestDatabase, testDatabase } from './test-database.ts';

export interface TestService extends Service {
  /** A key of team `default` with every scope. */
  key: string;
  directory: string;
  database: TestDatabase;
  /** Calls the API with this key. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** Databases of directories that are reused. On PostgreSQL they are deleted with the server. */
const databases = new Map<string, TestDatabase>();

async function databaseOf(directory: string, isReused: boolean): Promise<TestDatabase> {
  const database = databases.get(directory) ?? (await testDatabase(directory));
  if (isReused) databases.set(directory, database);
  return database;
}

const KEY = 'test-key-of-the-default-team';

/**
 * @param options.workflows files by their path below the workflows directory, such as `default/people.yaml`
 * @param options.settings environment variables such as `FLOWHOOK_ALLOW_NETWORKS`
 * @param options.directory reuses the directory of an earlier service. It is not deleted
 */
export async function startService(
  options: {
    workflows?: Record<string, string>;
    settings?: Record<string, string>;
    directory?: string;
    clock?: Clock;
    random?: () => number;
    dashboard?: { root?: string; builds?: boolean };
  } = {},
): Promise<TestService> {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'flowhook-test-')));
  await mkdir(join(directory, 'workflows'), { recursive: true });
  for (const [path, text] of Object.entries(options.workflows ?? {})) {
    await mkdir(dirname(join(directory, 'workflows', path)), { recursive: true });
    await writeFile(join(directory, 'workflows', path), text);
  }
  const given = options.settings?.FLOWHOOK_DATABASE;
  const database =
    given === undefined ? await databaseOf(directory, options.directory !== undefined) : givenDatabase(given);
  const config = readConfig(
    {},
    {
      FLOWHOOK_PORT: '0',
      FLOWHOOK_DATA: join(directory, 'data'),
      FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
      FLOWHOOK_BOOTSTRAP_KEY: KEY,
      // A test may leave an endpoint hanging.
      FLOWHOOK_DRAIN_SECONDS: '4',
      ...database.settings,
      ...options.settings,
    },
    directory,
  );
  const log =
    process.env.TEST_LOG === undefined ? silentLogger : createLogger({ level: 'debug', pretty: true });
  const service = await start(config, log, {
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.random === undefined ? {} : { random: options.random }),
    ...(options.dashboard === undefined ? {} : { dashboard: options.dashboard }),
  });
  let stopped: ReturnType<Service['stop']> | undefined;
  const stop = () => {
    stopped ??= (async () => {
      const report = await service.stop();
      if (options.directory === undefined) {
        await database.drop();
        await rm(directory, { recursive: true, force: true });
      }
      return report;
    })();
    return stopped;
  };
  atEnd(stop);
  return {
    ...service,
    stop,
    key: KEY,
    directory,
    database,
    async call(method, path, body, headers = {}) {
      const response = await fetch(service.url + path, {
        method,
        headers: {
          'x-api-key': KEY,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        body: text === '' ? undefined : JSON.parse(text),
      };
    },
  };
}
