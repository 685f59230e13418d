/**
 * Examines an installation. A running node examines itself; a command examines an installation with or without a
 * running server.
 */
import { statSync } from 'node:fs';
import { Problem } from '../model/error.ts';
import type { Examination } from '../model/finding.ts';
import { silentLogger } from '../observe/log.ts';
import { isPostgres } from '../store/database-url.ts';
import { isOwned, openStore, readSchema } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { type Check, type ExaminedDatabase, type ExaminedSettings, examine, type Subject } from './check.ts';

const NONE: ExaminedDatabase = {
  store: undefined,
  schema: undefined,
  mistake: undefined,
  without: undefined,
};
/** A result is cached for this time, because an examination reads whole files and measures the disk. */
const FRESH_MS = 30_000;

export class Doctor {
  readonly #subject: () => Promise<Subject>;
  readonly #stopping = new AbortController();
  #last: Examination | undefined;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #current: Promise<Examination> | undefined;

  readonly #clock: () => number;

  /**
   * @param subject returns what to examine; called before each examination
   * @param clock returns a monotonic time in milliseconds
   */
  constructor(subject: () => Promise<Subject>, clock: () => number = () => performance.now()) {
    this.#subject = subject;
    this.#clock = clock;
  }

  /**
   * Returns findings that are at most 30 s old. Concurrent calls share an examination. After `stop`, the promise
   * rejects.
   */
  examine(): Promise<Examination> {
    if (this.#last !== undefined && this.#clock() - this.#lastAtMs < FRESH_MS) {
      return Promise.resolve(this.#last);
    }
    this.#current ??= this.#examine().finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }

  /** Aborts the current examination. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Problem('stopping'));
    await this.#current?.catch(() => undefined);
  }

  async #examine(): Promise<Examination> {
    // The checks are loaded with the first examination, because most services never run an examination.
    const { CHECKS } = await import('./checks.ts');
    const examination = await examine(await this.#subject(), CHECKS, { signal: this.#stopping.signal });
    this.#last = examination;
    this.#lastAtMs = this.#clock();
    return examination;
  }
}

/** @param input.doubts sentences about probable mistakes in the settings */
export function doctorOfNode(input: {
  settings: ExaminedSettings;
  doubts: readonly string[];
  store: Store;
  node: () => NonNullable<Subject['node']>;
}): Doctor {
  const { settings, doubts, store, node } = input;
  return new Doctor(async () => {
    // If the database cannot be reached, other checks report the reason.
    const schema = await readSchema(settings.databaseUrl).catch(() => undefined);
    return {
      settings,
      mistakes: [],
      doubts,
      database: { ...NONE, store, schema },
      // On PostgreSQL, a node does not know whether other nodes are running.
      isServed: isPostgres(settings.databaseUrl) ? null : true,
      node: node(),
      online: null,
      isFull: false,
      clock: Date.now,
    };
  });
}

/**
 * @param input.settings the settings; if they are invalid, their mistakes, which become a finding
 * @param input.doubts sentences about probable mistakes in the settings
 * @param input.online the URLs to request; null if no request may be sent
 */
export async function examineInstallation(
  input: {
    settings: ExaminedSettings | { mistakes: readonly string[] };
    doubts: readonly string[];
    online: readonly string[] | null;
    isFull: boolean;
  },
  options: { checks?: readonly Check[]; onBegin?: (check: Check) => void } = {},
): Promise<Examination> {
  const { checks = (await import('./checks.ts')).CHECKS, ...others } = options;
  const subject = await subjectOf(input);
  try {
    return await examine(subject, checks, others);
  } finally {
    await subject.database.store?.close();
  }
}

async function subjectOf({
  settings,
  ...input
}: Parameters<typeof examineInstallation>[0]): Promise<Subject> {
  const common = { ...input, node: undefined, clock: Date.now };
  if ('mistakes' in settings) {
    return { ...common, settings: undefined, mistakes: settings.mistakes, database: NONE, isServed: null };
  }
  // Checks for a server before this process itself opens the database.
  const served = await isServed(settings);
  return { ...common, settings, mistakes: [], isServed: served, database: await openDatabase(settings) };
}

/** Opens the database. Errors are returned as `mistake`, not thrown. The caller must close the store. */
async function openDatabase(settings: ExaminedSettings): Promise<ExaminedDatabase> {
  const { databaseUrl } = settings;
  let schema: ExaminedDatabase['schema'];
  try {
    // Throws if this user may not access the file. Otherwise, such a file would look missing.
    if (!isPostgres(databaseUrl)) statSync(databaseUrl.slice('sqlite:'.length), { throwIfNoEntry: false });
    schema = await readSchema(databaseUrl);
    if (schema.found === 0) {
      return { ...NONE, schema, without: 'There is no database yet. The first start creates it' };
    }
    // The database is not opened, because opening a database with an older schema would migrate it.
    if (schema.found !== schema.newest) {
      return { ...NONE, schema, without: 'The schema is not at the version that this flowhook needs' };
    }
    const store = await openStore(databaseUrl, {
      publicUrl: () => '',
      log: silentLogger,
      listen: false,
      poolSize: 2,
    });
    return { ...NONE, schema, store };
  } catch (error) {
    return { ...NONE, schema, mistake: (error as Error).message };
  }
}

/**
 * Whether a server is running on the database. On PostgreSQL the result is null (unknown), because the server may run
 * on any machine.
 */
async function isServed({ databaseUrl }: ExaminedSettings): Promise<boolean | null> {
  // If the directory cannot be read, another check reports it.
  return isPostgres(databaseUrl) ? null : isOwned(databaseUrl).catch(() => null);
}
