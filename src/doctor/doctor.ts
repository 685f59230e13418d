/** Examines a running node: one examination at a time, whose result is cached for 30 s. */
import { Problem } from '../model/error.ts';
import type { Examination } from '../model/finding.ts';
import type { Resolver } from '../net/resolver.ts';
import { isPostgres } from '../store/database-url.ts';
import { readSchema } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { examine } from './examine.ts';
import type { ExaminedSettings, Subject } from './subject.ts';

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
  resolver: Resolver;
  node: () => NonNullable<Subject['node']>;
}): Doctor {
  const { settings, doubts, store, resolver, node } = input;
  return new Doctor(async () => {
    // Other checks report why the database cannot be reached.
    const schema = await readSchema(settings.databaseUrl).catch(() => undefined);
    return {
      settings,
      mistakes: [],
      doubts,
      database: { store, schema, mistake: undefined, without: undefined },
      // With several nodes, none knows whether the others are running.
      isServed: isPostgres(settings.databaseUrl) ? null : true,
      node: node(),
      resolver,
      online: null,
      isFull: false,
      clock: Date.now,
    };
  });
}
