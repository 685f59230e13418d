/** A million records: memory, first byte, and what queueing feels of it. */

import type { Benchmark } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { people } from './people.ts';
import { CALL_EVERY_MS, callees, whileQueueing } from './queueing.ts';
import { startReader } from './reader.ts';

const RECORDS = 1_000_000;
/** A 99th percentile of fewer calls would be their maximum: the read is repeated, each time from the database. */
const READS = 12;
const CALLEES = 4_000;

const benchmark: Benchmark = {
  about:
    `${RECORDS.toLocaleString('en')} records (about 90 MB) through a command source: the first run, the unchanged re-run and ${READS} whole reads ` +
    `from the database by another process, each with a queue call every ${CALL_EVERY_MS} ms, all durable. ` +
    '"idle" is the same call with nothing beside it.',
  units: {},
  async setUp() {
    return {
      contestants: [{ name: 'flowhook', round }],
      tearDown: async () => {},
    };
  },
};
export default benchmark;

async function round(): Promise<Record<string, number>> {
  // One job at a time: what is queued meanwhile waits, so that queueing is measured and not the starting of children.
  const flowhook = await startFlowhook(
    {
      'default/people.yaml': people.definition,
      'default/people.mjs': people.program(RECORDS),
      'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n',
      'default/last.yaml': 'guards: { minRecords: 0 }\nsource: { type: command, command: ["true"] }\n',
      ...callees(CALLEES),
    },
    { FLOWHOOK_MAX_RUNNING_JOBS: '1' },
  );
  const reader = startReader();
  try {
    const figures: Record<string, number> = {};
    const from = { next: 0 };
    // The last by name, and the last by number.
    for (const id of ['w999', `w${CALLEES - 1}`]) await flowhook.applied(id);
    for (const run of ['first run', 're-run']) {
      const { result, p99Ms, seconds } = await whileQueueing(flowhook, from, () =>
        flowhook.runToItsEnd('people'),
      );
      if (result.state !== 'finished') throw new Error(result.error);
      figures[`${run}: records/s`] = RECORDS / seconds;
      figures[`${run}: queue p99 ms`] = p99Ms;
      figures[`${run}: rows written`] = (result.records.added ?? 0) + (result.records.changed ?? 0);
      // Due last, so ended last: nothing waits any more.
      await flowhook.runToItsEnd('last');
    }
    await flowhook.hold('holder');
    const idle = await whileQueueing(flowhook, from, () => new Promise((done) => setTimeout(done, 5_000)));
    figures['idle: queue p99 ms'] = idle.p99Ms;
    const before = await flowhook.memory();
    await flowhook.resetPeak();
    const read = await whileQueueing(flowhook, from, async () => {
      const firsts: number[] = [];
      const rates: number[] = [];
      for (let n = 0; n < READS; n++) {
        await flowhook.forgetBodies();
        const { bytes, firstMs, seconds } = await reader.read({
          url: `${flowhook.url}/v1/workflows/people/data`,
          headers: flowhook.headers,
        });
        firsts.push(firstMs);
        rates.push(bytes / 1e6 / seconds);
      }
      return { firsts: firsts.toSorted((a, b) => a - b), rates: rates.toSorted((a, b) => a - b) };
    });
    const { firsts, rates } = read.result;
    figures['read: MB/s'] = rates[READS / 2] ?? 0;
    figures['read: first byte ms'] = firsts[READS / 2] ?? 0;
    // The first one waits for the thread that makes bodies.
    figures['read: slowest first byte ms'] = firsts.at(-1) ?? 0;
    figures['read: queue p99 ms'] = read.p99Ms;
    figures['read: queue calls'] = read.calls;
    figures['read: memory grown by MB'] = (await flowhook.memory()).peakMb - before.nowMb;
    return figures;
  } finally {
    await reader.stop();
    await flowhook.stop();
  }
}
