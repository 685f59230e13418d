/**
 * `npm run bench [name …] [-- --full]`: runs benchmarks and prints a table for each. Contestants take turns, in five rounds
 * by default, so that other load on the machine affects all of them. A figure is the median of its rounds, with its range.
 * Nothing here passes or fails.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Benchmark, type Contestant, type Figures, machine, type Result } from './benchmark.ts';
import { table } from './table.ts';

/** Run by default: Flowhook and the limits, in less than ten minutes. */
const USUAL = ['small', 'queue', 'read', 'ingest', 'deliver', 'jobs', 'footprint'] as const;
/** Run with `--full`, which also adds other products and larger sizes to the usual benchmarks. */
const FULL = [...USUAL, 'claims', 'growth'] as const;
/** Run only by name: they measure single parts. */
const OTHERS = [
  'filters',
  'growth-postgres',
  'scale',
  'latency',
  'stall',
  'hostile',
  'extract',
  'dashboard',
  'evaluate',
  'expect',
  'history',
] as const;
const ROUNDS = 5;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    /** `name=url`: see `deliver-peers.ts`. */
    peer: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: 'benchmarks/results' },
  },
});
const names: readonly string[] = [...FULL, ...OTHERS];
const unknown = positionals.filter((name) => !names.includes(name));
const givenRounds = values.rounds === undefined ? undefined : Number(values.rounds);
if (unknown.length > 0) refuse(`Unknown benchmark: ${unknown.join(', ')}. Known: ${names.join(', ')}`);
if (givenRounds !== undefined && !(Number.isInteger(givenRounds) && givenRounds > 0))
  refuse(`--rounds takes a whole number of at least 1, not ${values.rounds}`);

const from = performance.now();
// Before the first result is written, because results may be files of the repository.
const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
for (const name of positionals.length > 0 ? positionals : values.full ? FULL : USUAL) {
  const { default: benchmark } = (await import(`./${name}.ts`)) as { default: Benchmark };
  const rounds = givenRounds ?? benchmark.rounds ?? ROUNDS;
  const began = performance.now();
  const { figures, skipped } = await measure(name, benchmark, rounds);
  const { about, units, limit } = benchmark;
  const result: Result = {
    name,
    about,
    units,
    ...(limit === undefined ? {} : { limit }),
    machine: machine(),
    at: new Date().toISOString(),
    commit,
    rounds,
    full: values.full,
    seconds: Math.round((performance.now() - began) / 1_000),
    skipped,
    figures,
  };
  process.stdout.write(table(result));
  await mkdir(values.out, { recursive: true });
  await writeFile(join(values.out, `${name}.json`), `${JSON.stringify(result, null, 1)}\n`);
}
process.stderr.write(
  `${Math.round((performance.now() - from) / 1_000)} s; the results are in ${values.out}\n`,
);

async function measure(
  name: string,
  benchmark: Benchmark,
  rounds: number,
): Promise<{ figures: Figures; skipped: string[] }> {
  const {
    contestants,
    skipped = [],
    tearDown,
  } = await benchmark.setUp({
    full: values.full,
    peers: values.peer,
  });
  const figures: Figures = {};
  try {
    for (let round = 1; round <= rounds; round++) {
      const rest = new Map(contestants.map((contestant) => [contestant.name, partsOf(contestant)]));
      while (rest.size > 0) {
        for (const [contestant, parts] of rest) {
          const place = `${name}: round ${round} of ${rounds}, ${contestant}`;
          process.stderr.write(process.stderr.isTTY ? `\r${place}\x1b[K` : `${place}\n`);
          const { done, value: part } = await parts.next();
          if (done === true) rest.delete(contestant);
          const all = figures[contestant] ?? {};
          figures[contestant] = all;
          for (const [figure, value] of Object.entries(part ?? {})) {
            all[figure] = [...(all[figure] ?? []), value];
          }
        }
      }
    }
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    await tearDown();
  }
  return { figures, skipped };
}

/** The parts of a round. A round without parts is its own last part. Nothing runs before the first call of `next`. */
async function* partsOf(contestant: Contestant) {
  const round = contestant.round();
  if (!(Symbol.asyncIterator in round)) return round;
  yield* round;
}

function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}
