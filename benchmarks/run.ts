/**
 * `npm run bench [name …]`: runs benchmarks and prints one table each. Contestants take turns, at least five rounds,
 * so that what else the machine does hits all of them; a figure is the median with its spread. Nothing here passes
 * or fails.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** One thing that is measured. A round answers figures by their names. */
export interface Contestant {
  name: string;
  round(): Promise<Record<string, number>>;
}

/** What a benchmark file exports as default. */
export interface Benchmark {
  /** What is done, and how durable it is: one or two sentences. */
  about: string;
  /** What a figure is measured in, by its name. */
  units: Record<string, string>;
  /** The contestant that others are compared with, as a ratio. */
  limit?: string;
  rounds?: number;
  setUp(): Promise<{ contestants: Contestant[]; tearDown(): Promise<void> }>;
}

const NAMES = [
  'queue',
  'read',
  'million',
  'stall',
  'start',
  'hostile',
  'isolation',
  'drain',
  'extract',
  'dashboard',
] as const;
const ROUNDS = 5;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string' }, out: { type: 'string', default: 'benchmarks/results' } },
});
const chosen = positionals.length === 0 ? NAMES : positionals;
const unknown = chosen.filter((name) => !(NAMES as readonly string[]).includes(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no benchmark ${unknown.join(', ')}. There are: ${NAMES.join(', ')}\n`);
  process.exit(2);
}

const machine = `${availableParallelism()} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
for (const name of chosen) {
  const { default: benchmark } = (await import(`./${name}.ts`)) as { default: Benchmark };
  const rounds = Number(values.rounds ?? benchmark.rounds ?? ROUNDS);
  const figures = await measure(name, benchmark, rounds);
  print(name, benchmark, rounds, figures);
  await mkdir(values.out, { recursive: true });
  const path = join(values.out, `${name}.json`);
  await writeFile(
    path,
    `${JSON.stringify({ name, machine, rounds, at: new Date().toISOString(), figures }, null, 2)}\n`,
  );
}

/** Every figure of every round: contestant → figure → values. */
type Figures = Record<string, Record<string, number[]>>;

async function measure(name: string, benchmark: Benchmark, rounds: number): Promise<Figures> {
  const { contestants, tearDown } = await benchmark.setUp();
  const figures: Figures = {};
  try {
    for (let round = 1; round <= rounds; round++) {
      for (const contestant of contestants) {
        const place = `${name}: round ${round} of ${rounds}, ${contestant.name}`;
        process.stderr.write(process.stderr.isTTY ? `\r${place}\x1b[K` : `${place}\n`);
        for (const [figure, value] of Object.entries(await contestant.round())) {
          figures[contestant.name] ??= {};
          const all = figures[contestant.name] as Record<string, number[]>;
          all[figure] ??= [];
          all[figure]?.push(value);
        }
      }
    }
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    await tearDown();
  }
  return figures;
}

function print(name: string, benchmark: Benchmark, rounds: number, figures: Figures): void {
  process.stdout.write(
    `\n${name}: ${benchmark.about}\n${machine}; median of ${rounds} rounds (least–most)\n\n`,
  );
  const rows = Object.entries(figures).flatMap(([contestant, all]) =>
    Object.entries(all).map(([figure, measured]) => {
      const limit = benchmark.limit === undefined ? undefined : figures[benchmark.limit]?.[figure];
      return [
        contestant,
        figure,
        `${round(median(measured))} ${benchmark.units[figure] ?? ''}`.trim(),
        `(${round(Math.min(...measured))}–${round(Math.max(...measured))})`,
        limit === undefined || contestant === benchmark.limit
          ? ''
          : `${round(median(measured) / median(limit))} of ${benchmark.limit}`,
      ];
    }),
  );
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) {
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    );
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** Three figures are more than the noise leaves certain. */
function round(value: number): string {
  return Math.abs(value) >= 1_000
    ? Math.round(value).toLocaleString('en')
    : String(Number(value.toPrecision(3)));
}
