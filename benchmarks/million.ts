/** A million records: memory, first byte, and what queueing feels of it. */
import { Pool, request } from 'undici';
import { startFlowhook } from './flowhook.ts';
import { people } from './people.ts';
import type { Benchmark } from './run.ts';

const RECORDS = 1_000_000;
/** A queue call this often, of workflows that do nothing, while something large goes on. */
const CALL_EVERY_MS = 20;
const CALLED = 200;

const benchmark: Benchmark = {
  about:
    `${RECORDS.toLocaleString('en')} records (about 90 MB) through a command source: the first run, the unchanged re-run and the whole read, ` +
    `each with a queue call every ${CALL_EVERY_MS} ms (SQLite, synchronous=FULL).`,
  units: {
    time: 's',
    'records/s': '',
    'queue p99': 'ms',
    'first byte': 'ms',
    'memory grown by': 'MB',
    MB: '/s',
    'rows written': '',
  },
  async setUp() {
    return {
      contestants: [{ name: 'flowhook', round }],
      tearDown: async () => {},
    };
  },
};
export default benchmark;

async function round(): Promise<Record<string, number>> {
  const files: Record<string, string> = {
    'default/people.yaml': people.definition,
    'default/people.mjs': people.program(RECORDS),
    'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n',
    'default/last.yaml': 'guards: { minRecords: 0 }\nsource: { type: command, command: ["true"] }\n',
  };
  for (let i = 0; i < CALLED; i++)
    files[`default/w${i}.yaml`] = 'guards: { minRecords: 0 }\nsource: { type: command, command: ["true"] }\n';
  // One job at a time: what is queued meanwhile waits, so that queueing is measured and not the starting of children.
  const flowhook = await startFlowhook(files, { FLOWHOOK_MAX_RUNNING_JOBS: '1' });
  try {
    const figures: Record<string, number> = {};
    for (const run of ['first run', 're-run']) {
      const { result, p99Ms, seconds } = await whileQueueing(flowhook, () => flowhook.runToItsEnd('people'));
      if (result.state !== 'finished') throw new Error(result.error);
      figures[`${run}: records/s`] = RECORDS / seconds;
      figures[`${run}: queue p99`] = p99Ms;
      figures[`${run}: rows written`] = (result.records.added ?? 0) + (result.records.changed ?? 0);
      // Due last, so ended last: nothing waits any more.
      await flowhook.runToItsEnd('last');
    }
    await flowhook.hold('holder');
    const before = await flowhook.memory();
    await flowhook.resetPeak();
    const { result, p99Ms, seconds } = await whileQueueing(flowhook, () => readWhole(flowhook));
    figures['read: MB/s'] = result.bytes / 1e6 / seconds;
    figures['read: first byte ms'] = result.firstMs;
    figures['read: queue p99'] = p99Ms;
    figures['read: memory grown by MB'] = (await flowhook.memory()).peakMb - before.nowMb;
    return figures;
  } finally {
    await flowhook.stop();
  }
}

type Flowhook = Awaited<ReturnType<typeof startFlowhook>>;

async function readWhole({ url, headers }: Flowhook): Promise<{ bytes: number; firstMs: number }> {
  const from = performance.now();
  const answer = await request(`${url}/v1/workflows/people/data`, { headers });
  let firstMs = 0;
  let bytes = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    if (bytes === 0) firstMs = performance.now() - from;
    bytes += chunk.length;
  }
  return { bytes, firstMs };
}

/** Does one large thing, and meanwhile measures how long a queue call takes. */
async function whileQueueing<T>(
  { url, headers }: Flowhook,
  act: () => Promise<T>,
): Promise<{ result: T; p99Ms: number; seconds: number }> {
  const pool = new Pool(url, { connections: 4 });
  const took: number[] = [];
  let going = true;
  const queueing = (async () => {
    for (let i = 0; going; i = (i + 1) % CALLED) {
      const from = performance.now();
      const answer = await pool.request({ method: 'POST', path: `/v1/workflows/w${i}/queue`, headers });
      await answer.body.dump();
      took.push(performance.now() - from);
      await new Promise((later) => setTimeout(later, CALL_EVERY_MS));
    }
  })();
  const from = performance.now();
  const result = await act();
  const seconds = (performance.now() - from) / 1_000;
  going = false;
  await queueing;
  await pool.close();
  took.sort((a, b) => a - b);
  return { result, seconds, p99Ms: took[Math.floor(took.length * 0.99)] ?? 0 };
}
