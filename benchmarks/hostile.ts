/** Whether hostile sources end within their limits, and how long queue calls take meanwhile. */
import type { Benchmark } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';
import { callees, whileQueueing } from './queueing.ts';

/** One workflow each. All of them run repeatedly while calls are measured. */
const HOSTILE: Record<string, string> = {
  prints: 'yes "{\\"id\\":\\"1\\",\\"name\\":\\"again and again\\"}"',
  'floods-log': 'yes "a line of the log" >&2',
  hangs: 'trap "" TERM; sleep 600',
  forks: 'while :; do sleep 600 & done',
  allocates: 'exec node -e "const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))"',
  'long-line': 'head -c 100000000 /dev/zero | tr "\\0" x',
};
const FOR_MS = 15_000;

const benchmark: Benchmark = {
  about:
    `A queue call every 20 ms for ${FOR_MS / 1_000} s: alone, and while six sources print endlessly, flood their log, hang and ` +
    'ignore SIGTERM, fork endlessly, allocate endlessly, and write a line of 100 MB, again and again (memory limit 128 MB, ' +
    'time limit 3 s; two of them at a time).',
  units: {},
  rounds: 3,
  async setUp() {
    const limits = 'limits: { timeout: 3s, memory: 128MB }\nretries: { max: 0 }\n';
    const flowhook = await startFlowhook(
      {
        ...Object.fromEntries(
          Object.entries(HOSTILE).map(([name, script]) => [
            `default/${name}.yaml`,
            `${limits}source: { type: command, command: [bash, -c, ${JSON.stringify(`ulimit -u 2000; ${script}`)}] }\n`,
          ]),
        ),
        'default/holder.yaml': 'source: { type: command, command: [sleep, "900"] }\n',
        ...callees(5_000),
      },
      { FLOWHOOK_MAX_RUNNING_JOBS: '3' },
    );
    const from = { next: 0 };
    const figures = ({ p50Ms, p99Ms, calls }: { p50Ms: number; p99Ms: number; calls: number }) => ({
      'queue p50 ms': p50Ms,
      'queue p99 ms': p99Ms,
      calls,
    });
    const pause = () => new Promise((done) => setTimeout(done, FOR_MS));
    return {
      contestants: [
        {
          name: 'alone',
          round: async () => figures(await whileQueueing(flowhook, from, pause)),
        },
        {
          name: 'hostile sources',
          async round() {
            let going = true;
            let ended = 0;
            const running = Object.keys(HOSTILE).map(async (name) => {
              while (going) {
                const job = await flowhook.runToItsEnd(name);
                if (job.state !== 'failed') throw new Error(`${name}: ${job.state}`);
                ended += 1;
              }
            });
            const measured = await whileQueueing(flowhook, from, pause);
            going = false;
            await Promise.all(running);
            return { ...figures(measured), 'runs ended within their limits': ended };
          },
        },
      ],
      tearDown: () => flowhook.stop(),
    };
  },
};
export default benchmark;
