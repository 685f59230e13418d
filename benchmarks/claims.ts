/** Claims on PostgreSQL, while clients of one team queue jobs as fast as they can: do claims find the due jobs? */
import { silentLogger } from '../src/observe/log.ts';
import { Poller } from '../src/std/chore.ts';
import { heldOf, makeWorkflow } from '../src/store/conformance/setup.ts';
import { openStore } from '../src/store/open.ts';
import type { ClaimedJob } from '../src/store/operations/attempts.ts';
import type { Store } from '../src/store/store.ts';
import type { Benchmark, Contestant } from './benchmark.ts';
import { DURABILITY, startDurablePostgres } from './postgres.ts';
import { shuffled } from './shuffled.ts';
import { openTables } from './tables.ts';

const CALLERS = [8, 64];
/** Jobs that run at the same time. */
const SLOTS = 4;
const FOR_MS = 8_000;
/** Due jobs before the first claim. */
const BACKLOG = 500;
/** More than can be queued in a round. */
const WORKFLOWS_A_ROUND = 120_000;
const workflowOf = shuffled(WORKFLOWS_A_ROUND);
/** As in the job engine. */
const POLL_MS = 1_000;
const CLAIM = { nodeId: 'node-of-the-claims', leaseMs: 30_000, perTeam: SLOTS };
const PUBLISH = { state: undefined, fields: [] };

const benchmark: Benchmark = {
  about:
    `One node on PostgreSQL (${DURABILITY}) claims jobs for ${SLOTS} slots like the job engine, for ${FOR_MS / 1_000} s, while ${CALLERS.join(' or ')} clients ` +
    'of one team keep queueing jobs of other workflows, in random order. A claimed job ends immediately without publishing anything, and ' +
    'other jobs are always due. "found nothing": the share of claims with free slots that claimed no job. "a free slot waited": the time from the end of a job to the claim of the next job for its slot.',
  units: {
    claims: '/s',
    'found nothing': '%',
    'jobs claimed': '/s',
    'a free slot waited, p50': 'ms',
    'a free slot waited, p99': 'ms',
    'a free slot waited, longest': 'ms',
    'jobs queued': '/s',
  },
  rounds: 3,
  async setUp() {
    const postgres = await startDurablePostgres();
    const contestants: (Contestant & { stop(): Promise<void> })[] = [];
    for (const callers of CALLERS) {
      contestants.push(await contestant(callers, await postgres.makeDatabase(`claims_${callers}`)));
    }
    return {
      contestants,
      async tearDown() {
        for (const one of contestants) await one.stop();
        await postgres.stop();
      },
    };
  },
};
export default benchmark;

async function contestant(
  callers: number,
  database: string,
): Promise<Contestant & { stop(): Promise<void> }> {
  const store = await openStore(database, { publicUrl: () => '', log: silentLogger, own: true });
  const { teamId } = await makeWorkflow(store, { id: 'model' });
  const tables = await openTables(database);
  let prepared = 0;
  let queued = 0;
  const queueUntil = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      const workflowId = `w${workflowOf(queued++)}`;
      const { outcome } = await store.jobs.enqueue({
        teamId,
        workflowId,
        origin: 'api',
        idempotencyKey: null,
      });
      if (outcome !== 'queued') throw new Error(`A job was ${outcome}`);
    }
  };
  const together = (isEnough: () => boolean) =>
    Promise.all(Array.from({ length: callers }, () => queueUntil(isEnough)));
  return {
    name: `${callers} callers`,
    async round() {
      for (; prepared < queued + WORKFLOWS_A_ROUND; prepared += WORKFLOWS_A_ROUND) {
        await tables.copyWorkflow({ like: 'model', ids: 'w', from: prepared, count: WORKFLOWS_A_ROUND });
      }
      const from = queued;
      await together(() => queued >= from + BACKLOG);
      const claims = new Claims(store, teamId);
      const before = queued;
      const fromMs = performance.now();
      claims.start();
      // Stops the claims before an error is thrown, because they need the store.
      let figures: Record<string, number> = {};
      try {
        await together(() => performance.now() - fromMs >= FOR_MS);
      } finally {
        figures = await claims.end();
      }
      return { ...figures, 'jobs queued': ((queued - before) * 1_000) / FOR_MS };
    },
    async stop() {
      await tables.close();
      await store.close();
    },
  };
}

/** Claims jobs for free slots and ends them, as the job engine does. Some jobs must always be due. */
class Claims {
  readonly #store: Store;
  readonly #teamId: string;
  readonly #poller: Poller;
  #unwatch: (() => void) | undefined;
  #fromMs = 0;
  /** Since when each free slot is free, in milliseconds, earliest first. */
  #freeSince: number[] = [];
  readonly #waits: number[] = [];
  readonly #running = new Set<Promise<void>>();
  #claims = 0;
  #empty = 0;
  #claimed = 0;

  constructor(store: Store, teamId: string) {
    this.#store = store;
    this.#teamId = teamId;
    this.#poller = new Poller({ everyMs: POLL_MS, random: Math.random, look: () => this.#claim() });
  }

  start(): void {
    this.#fromMs = performance.now();
    this.#freeSince = Array(SLOTS).fill(this.#fromMs);
    this.#unwatch = this.#store.watch(({ jobs }) => {
      if (jobs) this.#poller.nudge();
    });
    this.#poller.start();
  }

  /** Resolves with the figures when the last job has ended. */
  async end(): Promise<Record<string, number>> {
    const toMs = performance.now();
    // Slots that are still free count with the time so far.
    this.#waits.push(...this.#freeSince.map((since) => toMs - since));
    this.#unwatch?.();
    const seconds = (toMs - this.#fromMs) / 1_000;
    const figures = {
      claims: this.#claims / seconds,
      'found nothing': (this.#empty * 100) / this.#claims,
      'jobs claimed': this.#claimed / seconds,
    };
    const waits = this.#waits.toSorted((a, b) => a - b);
    const at = (share: number) => waits[Math.ceil(waits.length * share) - 1] ?? 0;
    await this.#poller.stop();
    await Promise.all(this.#running);
    return {
      ...figures,
      'a free slot waited, p50': at(0.5),
      'a free slot waited, p99': at(0.99),
      'a free slot waited, longest': at(1),
    };
  }

  async #claim(): Promise<void> {
    const limit = this.#freeSince.length;
    if (limit === 0) return;
    const busy = this.#running.size > 0 ? [this.#teamId] : [];
    const jobs = await this.#store.jobs.claim({ ...CLAIM, limit, except: [], busy });
    this.#claims += 1;
    if (jobs.length === 0) this.#empty += 1;
    this.#claimed += jobs.length;
    for (const job of jobs) this.#begin(job);
  }

  #begin({ job }: ClaimedJob): void {
    this.#waits.push(performance.now() - (this.#freeSince.shift() as number));
    const ended = this.#store.records.publish({ held: heldOf(job), ...PUBLISH }).then(() => {
      this.#running.delete(ended);
      this.#freeSince.push(performance.now());
      this.#poller.nudge();
    });
    this.#running.add(ended);
  }
}
