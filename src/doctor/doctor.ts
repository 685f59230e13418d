/** Examines a running node, or an installation from outside, also while a server runs on it. */
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
/** How long a result is cached: an examination reads whole files and measures the disk. */
const FRESH_MS = 30_000;

export class Doctor {
  readonly #subject: () => Promise<Subject>;
  readonly #stopping = new AbortController();
  #last: Examination | undefined;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #current: Promise<Examination> | undefined;

  readonly #clock: () => number;

  /**
   * @param subject called before each examination
   * @param clock monotonic, in milliseconds
   */
  constructor(subject: () => Promise<Subject>, clock: () => number = () => performance.now()) {
    this.#subject = subject;
    this.#clock = clock;
  }

  /** The findings, at most 30 s old. Simultaneous calls share an examination. Rejects when the doctor is stopped. */
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
    // Loaded with the first examination: most services never have one.
    const { CHECKS } = await import('./checks.ts');
    const examination = await examine(await this.#subject(), CHECKS, { signal: this.#stopping.signal });
    this.#last = examination;
    this.#lastAtMs = this.#clock();
    return examination;
  }
}

/** @param input.doubts what may be a mistake in the settings: sentences */
export function doctorOfNode(input: {
  settings: ExaminedSettings;
  doubts: readonly string[];
  store: Store;
  node: () => NonNullable<Subject['node']>;
}): Doctor {
  const { settings, doubts, store, node } = input;
  return new Doctor(async () => {
    // Other checks report why the database cannot be reached.
    const schema = await readSchema(settings.databaseUrl).catch(() => undefined);
    return {
      settings,
      mistakes: [],
      doubts,
      database: { ...NONE, store, schema },
      // With several nodes, none knows whether the others are running.
      isServed: isPostgres(settings.databaseUrl) ? null : true,
      node: node(),
      online: null,
      isFull: false,
      clock: Date.now,
    };
  });
}

/**
 * @param input.settings the settings, or everything that is wrong with them, which becomes a finding
 * @param input.doubts what may be a mistake in them: sentences
 * @param input.online URLs that may be requested; null: no request may leave this machine
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
  // Before this process opens the database itself.
  const served = await isServed(settings);
  return { ...common, settings, mistakes: [], isServed: served, database: await openDatabase(settings) };
}

/** Never throws: errors become `mistake`. The caller must close the store. */
async function openDatabase(settings: ExaminedSettings): Promise<ExaminedDatabase> {
  const { databaseUrl } = settings;
  let schema: ExaminedDatabase['schema'];
  try {
    // Throws for a file that this user may not access, which would otherwise be taken for a missing one.
    if (!isPostgres(databaseUrl)) statSync(databaseUrl.slice('sqlite:'.length), { throwIfNoEntry: false });
    schema = await readSchema(databaseUrl);
    if (schema.found === 0) {
      return { ...NONE, schema, without: 'There is no database yet; the first start creates it' };
    }
    // Opening an older one would migrate it.
    if (schema.found !== schema.newest) {
      return { ...NONE, schema, without: 'The schema version is not the one this flowhook needs' };
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

/** Whether a server runs on it; null if that cannot be known: on PostgreSQL it may run on any machine. */
async function isServed({ databaseUrl }: ExaminedSettings): Promise<boolean | null> {
  // Another check reports a directory that cannot be read.
  return isPostgres(databaseUrl) ? null : isOwned(databaseUrl).catch(() => null);
}
