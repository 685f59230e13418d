/** From queueing a job to the first line of the user's code, on an idle server. */

import type { Benchmark } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';

/** Starts that one round measures, one after another. */
const STARTS = 20;

const MODULE = `
export default async function* () {
  yield { id: '1', name: String(performance.timeOrigin + performance.now()) };
}
`;
/** A shell that knows the time itself: another program would be measured along with it. */
const SHELL = String.raw`echo "{\"id\":\"1\",\"name\":\"$EPOCHREALTIME\"}"`;

const benchmark: Benchmark = {
  about:
    `POST queue to the first line of the user's code, ${STARTS} starts a round, one at a time, on an idle server. "claimed" is the time ` +
    'from the commit that queued the job to the commit that claimed it, by the clock of the database.',
  units: {
    'first line, median': 'ms',
    'first line, slowest': 'ms',
    'claimed, median': 'ms',
    'claimed, slowest': 'ms',
  },
  async setUp() {
    const flowhook = await startFlowhook({
      'default/module.mts': MODULE,
      'default/command.yaml': `source:\n  type: command\n  command: [bash, -c, ${JSON.stringify(SHELL)}]\n`,
    });
    return {
      contestants: [
        { name: 'a module', round: () => measure('module', 1) },
        { name: 'a command', round: () => measure('command', 1_000) },
      ],
      tearDown: () => flowhook.stop(),
    };

    /** @param scale what turns the time that the program told into milliseconds */
    async function measure(workflow: string, scale: number): Promise<Record<string, number>> {
      const lines: number[] = [];
      const claims: number[] = [];
      for (let n = 0; n < STARTS; n++) {
        const queuedAt = performance.timeOrigin + performance.now();
        const job = await flowhook.runToItsEnd(workflow);
        if (job.state !== 'finished') throw new Error(job.error);
        const data = await fetch(`${flowhook.url}/v1/workflows/${workflow}/data`, {
          headers: flowhook.headers,
        });
        const [{ name }] = (await data.json()) as [{ name: string }];
        // bash tells seconds, with the decimal sign of the locale.
        lines.push(Number(name.replace(',', '.')) * scale - queuedAt);
        claims.push(Date.parse(job.startedAt) - Date.parse(job.queuedAt));
      }
      return {
        'first line, median': middle(lines),
        'first line, slowest': Math.max(...lines),
        'claimed, median': middle(claims),
        'claimed, slowest': Math.max(...claims),
      };
    }
  },
};
export default benchmark;

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
