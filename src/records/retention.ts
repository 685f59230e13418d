/** Gives up old versions in the background, in steps so small that nobody else's write waits for them. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../observe/log.ts';
import { Wake } from '../std/wake.ts';
import type { Retention, Store } from '../store/store.ts';

/**
 * What is kept of a workflow: its newest 10 versions as far as they are not older than 30 days, and whatever was
 * current within the last hour, so that a reader who has just begun comes to its end.
 */
const KEEP: Retention = { keepVersions: 10, keepMs: 30 * 24 * 3_600_000, graceMs: 3_600_000 };

const EVERY_MS = 60_000;
/** After a job has ended there may be something to do; many that end together are looked at together. */
const NOTICE_MS = 1_000;
/** Workflows that one look takes on. */
const MAX_WORKFLOWS = 1_000;
/** Rows of one step: as many as take about this long, for they may be short or 1 MiB each. */
const STEP_MS = 10;
const FIRST_STEP = 50;
const MAX_STEP = 500;
/** Between two steps the writer is left to others for as long as a step took, and at least this long. */
const MIN_PAUSE_MS = 5;

export class Pruner {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #wake: Wake;
  #ended = new AbortController();
  #unwatch: (() => void) | undefined;
  #notice: NodeJS.Timeout | undefined;
  #ticking: Promise<void> | undefined;

  constructor({ store, log, random }: { store: Store; log: Logger; random: () => number }) {
    this.#store = store;
    this.#log = log;
    this.#wake = new Wake({ everyMs: EVERY_MS, random, look: () => this.tick() });
  }

  start(): void {
    if (this.#unwatch !== undefined) return;
    this.#ended = new AbortController();
    this.#unwatch = this.#store.watch(({ jobs }) => {
      if (jobs) this.#noticeSoon();
    });
    this.#wake.start();
  }

  /** Resolves when the step under way has ended. */
  async stop(): Promise<void> {
    this.#unwatch?.();
    this.#unwatch = undefined;
    clearTimeout(this.#notice);
    this.#notice = undefined;
    this.#ended.abort();
    await this.#wake.stop();
    await this.#ticking;
  }

  /** Prunes whatever is due. Never rejects: what failed is logged, and tried again at the next look. */
  tick(): Promise<void> {
    this.#ticking ??= this.#pruneAll()
      .catch((err) => this.#log.error({ err }, 'retention.failed'))
      .finally(() => {
        this.#ticking = undefined;
      });
    return this.#ticking;
  }

  async #pruneAll(): Promise<void> {
    for (const workflow of await this.#store.records.prunable({ ...KEEP, limit: MAX_WORKFLOWS })) {
      await this.#prune(workflow);
    }
  }

  async #prune(workflow: { teamId: string; workflowId: string }): Promise<void> {
    const { signal } = this.#ended;
    for (let limit = FIRST_STEP; !signal.aborted; ) {
      const fromMs = performance.now();
      const { done } = await this.#store.records.prune({ ...workflow, ...KEEP, limit });
      if (done) return;
      const tookMs = performance.now() - fromMs;
      limit = Math.max(1, Math.min(MAX_STEP, Math.round((limit * STEP_MS) / tookMs), limit * 2));
      await pause(Math.max(tookMs, MIN_PAUSE_MS), undefined, { signal }).catch(() => undefined);
    }
  }

  #noticeSoon(): void {
    this.#notice ??= setTimeout(() => {
      this.#notice = undefined;
      this.#wake.nudge();
    }, NOTICE_MS).unref();
  }
}
