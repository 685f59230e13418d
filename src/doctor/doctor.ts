/** The checks of a node that runs: one examination at a time, remembered for a while, for whoever asks. */
import { Problem } from '../model/error.ts';
import type { Examination } from '../model/finding.ts';
import type { Resolver } from '../net/resolver.ts';
import { isPostgres } from '../store/database-url.ts';
import { readSchema } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { examine } from './examine.ts';
import type { ExaminedSettings, Subject } from './subject.ts';

/** Reading a whole file and waiting for a disk are not to be had as often as somebody likes. */
const FRESH_MS = 30_000;

export class Doctor {
  readonly #subject: () => Promise<Subject>;
  readonly #stopping = new AbortController();
  #last: Examination | undefined;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #current: Promise<Examination> | undefined;

  readonly #clock: () => number;

  /**
   * @param subject asked before each examination
   * @param clock any steady one, in milliseconds
   */
  constructor(subject: () => Promise<Subject>, clock: () => number = () => performance.now()) {
    this.#subject = subject;
    this.#clock = clock;
  }

  /** What was found, at most 30 s ago. Calls at one moment share an examination. Rejects when this is stopped. */
  examine(): Promise<Examination> {
    if (this.#last !== undefined && this.#clock() - this.#lastAtMs < FRESH_MS) {
      return Promise.resolve(this.#last);
    }
    this.#current ??= this.#examine().finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }

  /** Ends the examination under way. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Problem('stopping'));
    await this.#current?.catch(() => undefined);
  }

  async #examine(): Promise<Examination> {
    // Loaded with the first one: few services are ever examined from inside.
    const { CHECKS } = await import('./checks.ts');
    const examination = await examine(await this.#subject(), CHECKS, { signal: this.#stopping.signal });
    this.#last = examination;
    this.#lastAtMs = this.#clock();
    return examination;
  }
}

/** @param input.doubts what looks like a mistake in the settings and is none: sentences */
export function doctorOfNode(input: {
  settings: ExaminedSettings;
  doubts: readonly string[];
  store: Store;
  resolver: Resolver;
  node: () => NonNullable<Subject['node']>;
}): Doctor {
  const { settings, doubts, store, resolver, node } = input;
  return new Doctor(async () => {
    // What is wrong with the way to the database the checks tell.
    const schema = await readSchema(settings.databaseUrl).catch(() => undefined);
    return {
      settings,
      mistakes: [],
      doubts,
      database: { store, schema, mistake: undefined, without: undefined },
      // Of several nodes none can say whether the others do their part.
      isServed: isPostgres(settings.databaseUrl) ? null : true,
      node: node(),
      resolver,
      online: null,
      isFull: false,
      clock: Date.now,
    };
  });
}
