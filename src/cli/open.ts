/** Opens the database beside a server that may be running, for a short operation. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { createLogger, type Logger } from '../observe/log.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';

/** What a command works with. Messages go to standard error; what was asked for goes to standard output. */
export interface Opened {
  store: Store;
  log: Logger;
}

/** Opens the database, runs the operation, and closes it, whatever happens. */
export async function withStore<T>(config: Config, operation: (opened: Opened) => Promise<T>): Promise<T> {
  if (!existsSync(join(config.dataDirectory, 'flowhook.db'))) {
    process.stderr.write(`Making a new database in ${config.dataDirectory}\n`);
  }
  mkdirSync(config.dataDirectory, { recursive: true, mode: 0o700 });
  const log = createLogger({
    level: config.logLevel === 'info' ? 'warn' : config.logLevel,
    pretty: config.logPretty,
  });
  const store = await openStore(config.databaseUrl, {
    own: false,
    log,
    // No command of this kind causes an event that names this address.
    publicUrl: () => config.publicUrl ?? '',
  });
  try {
    return await operation({ store, log });
  } finally {
    await store.close();
  }
}
