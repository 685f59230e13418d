/** A reader that stalls for a minute while versions are published: what it costs others, and whether its body is intact. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Benchmark } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { printing } from './people.ts';
import { callees, whileQueueing } from './queueing.ts';
import { type ReadResult, startReader } from './reader.ts';

const RECORDS = 200_000;
const STALL_MS = 60_000;

/** Every run emits different records, so that every run publishes. */
const PROGRAM = `const run = process.env.FLOWHOOK_JOB;${printing(
  RECORDS,
  `'{"id":"' + i + '","run":"' + run + '","pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}\\n'`,
)}`;

const benchmark: Benchmark = {
  about:
    `Two readers of ${RECORDS.toLocaleString('en')} records stall for ${STALL_MS / 1_000} s after their first bytes, one of them without ` +
    'a cached file, while every record keeps changing. "same bytes" is 1 if both receive the same body as a ' +
    'reader without a pause.',
  units: {},
  rounds: 1,
  async setUp() {
    return { contestants: ['64', '0'].map((cache) => contestant(cache)), tearDown: async () => {} };
  },
};
export default benchmark;

function contestant(cacheMb: string) {
  return {
    name: cacheMb === '0' ? 'without a file' : 'with a file',
    async round(): Promise<Record<string, number>> {
      const flowhook = await startFlowhook(
        {
          'default/people.yaml': 'source: { type: command, command: [node, people.mjs] }\n',
          'default/people.mjs': PROGRAM,
          'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n',
          ...callees(8_000),
        },
        { FLOWHOOK_MAX_RUNNING_JOBS: '2', FLOWHOOK_REPRESENTATION_CACHE_MB: cacheMb },
      );
      const reader = startReader();
      try {
        await flowhook.runToItsEnd('people');
        await flowhook.hold('holder');
        const at = { url: `${flowhook.url}/v1/workflows/people/data`, headers: flowhook.headers };
        const whole = await reader.read({ ...at, pauseMs: 0 });
        await flowhook.forgetBodies();
        let stalled: ReadResult | undefined;
        const reading = reader.read({ ...at, pauseMs: STALL_MS }).then((result) => {
          stalled = result;
        });
        let walBytes = 0;
        let versions = 0;
        const { p99Ms } = await whileQueueing(flowhook, { next: 0 }, async () => {
          while (stalled === undefined) {
            const job = await flowhook.runToItsEnd('people');
            if (job.state !== 'finished') throw new Error(job.error);
            versions += 1;
            const wal = await stat(join(flowhook.directory, 'data/flowhook.db-wal'));
            walBytes = Math.max(walBytes, wal.size);
          }
        });
        await reading;
        return {
          'versions published': versions,
          'largest WAL MB': walBytes / 1e6,
          'queue p99 ms': p99Ms,
          'same bytes': Number(stalled?.sha256 === whole.sha256 && stalled.version === whole.version),
        };
      } finally {
        await reader.stop();
        await flowhook.stop();
      }
    },
  };
}
