/** What a benchmark is, and what is kept of it. */
import { availableParallelism, cpus, totalmem } from 'node:os';

/** Measured figures by their names. */
type Measured = Record<string, number>;

/** One thing that is measured. A round in parts lets the others have their turn after each of them. */
export interface Contestant {
  name: string;
  round(): Promise<Measured> | AsyncIterable<Measured>;
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
  /**
   * @param options `full`: with the peers, and with the sizes that take long; `peers`: those that run somewhere
   *   already, each as `name=url`
   */
  setUp(options: { full: boolean; peers: readonly string[] }): Promise<{
    contestants: Contestant[];
    /** Who does not take part, and why: one sentence each. */
    skipped?: string[];
    tearDown(): Promise<void>;
  }>;
}

/** Every figure of every round: contestant → figure → values. */
export type Figures = Record<string, Record<string, number[]>>;

/** What a run leaves as JSON; the tables and plots of docs/performance.md are made of such files. */
export interface Result {
  name: string;
  about: string;
  units: Record<string, string>;
  limit?: string;
  machine: string;
  /** ISO 8601, when it was over. */
  at: string;
  rounds: number;
  full: boolean;
  seconds: number;
  skipped: string[];
  figures: Figures;
}

export function machine(): string {
  return `${availableParallelism()} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** Three digits are more than the noise leaves certain. */
export function rounded(value: number): string {
  return Math.abs(value) >= 1_000
    ? Math.round(value).toLocaleString('en')
    : String(Number(value.toPrecision(3)));
}

/**
 * How far a figure is from the limit's of the same name: the median of the ratios of each round, for what disturbs a
 * round disturbs both. Undefined where the limit has no such figure, and for the limit itself.
 */
export function ratio(
  result: Pick<Result, 'figures' | 'limit'>,
  contestant: string,
  figure: string,
): number | undefined {
  if (result.limit === undefined || contestant === result.limit) return undefined;
  const limits = result.figures[result.limit]?.[figure];
  const ours = result.figures[contestant]?.[figure];
  if (limits === undefined || ours === undefined || limits.length !== ours.length) return undefined;
  return median(ours.map((value, round) => value / (limits[round] ?? Number.NaN)));
}
