/**
 * Starts programs from a process of its own, for the limit of jobs: the more memory a process has, the longer each start
 * of a program takes it, and the process of a benchmark has hundreds of megabytes.
 */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';

interface Order {
  argv: readonly string[];
  times: number;
  atOnce: number;
}

interface Ran {
  /** When the first program was started, in epoch milliseconds with fractions. */
  fromMs: number;
  /** Until the last program ended. */
  tookMs: number;
  /** What one of the programs wrote to its standard output. */
  output: string;
}

export interface Spawner {
  run(order: Order): Promise<Ran>;
  stop(): Promise<void>;
}

export function startSpawner(): Spawner {
  const child = fork(import.meta.filename, ['run']);
  return {
    async run(order) {
      const reply = once(child, 'message');
      child.send(order);
      return (await reply)[0] as Ran;
    },
    async stop() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

if (process.argv[2] === 'run')
  process.on('message', async (order: Order) => process.send?.(await run(order)));

async function run({ argv, times, atOnce }: Order): Promise<Ran> {
  const fromMs = performance.timeOrigin + performance.now();
  let left = times;
  let output = '';
  const slot = async () => {
    while (left-- > 0) output = await outputOf(argv);
  };
  await Promise.all(Array.from({ length: atOnce }, slot));
  return { fromMs, tookMs: performance.timeOrigin + performance.now() - fromMs, output };
}

async function outputOf([program = '', ...args]: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await once(child, 'close');
  return text;
}
