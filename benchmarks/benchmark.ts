/** The interface of a benchmark, its results, and the arithmetic on them. */
import { availableParallelism, cpus, totalmem } from 'node:os';

/** Figures by name. */
type Measured = Record<string, number>;

/** A program that is measured. If a round has parts, the other contestants take their turn after each part. */
export interface Contestant {
  name: string;
  round(): Promise<Measured> | AsyncIterable<Measured>;
}

/** The default export of a benchmark's file. */
export interface Benchmark {
  /** What is measured, and how durable it is. */
  about: string;
  /** The unit of each figure. */
  units: Record<string, string>;
  /** The contestant that the others are compared with. */
  limit?: string;
  rounds?: number;
  /**
   * @param options `full`: also measure other products, and sizes that take long; `peers`: products that are already
   *   running, each as `name=url`
   */
  setUp(options: { full: boolean; peers: readonly string[] }): Promise<{
    contestants: Contestant[];
    /** What was not measured, and why: one sentence each. */
    skipped?: string[];
    tearDown(): Promise<void>;
  }>;
}

/** Contestant → figure → one value per round. */
export type Figures = Record<string, Record<string, number[]>>;

/** The JSON file that a run writes. docs/performance.md is generated from such files. */
export interface Result {
  name: string;
  about: string;
  units: Record<string, string>;
  limit?: string;
  machine: string;
  /** ISO 8601: when the run ended. */
  at: string;
  /** The commit that was measured. */
  commit?: string;
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

/** Three digits: the noise is larger than that. */
export function rounded(value: number): string {
  return Math.abs(value) >= 1_000
    ? Math.round(value).toLocaleString('en')
    : String(Number(value.toPrecision(3)));
}

/** `/s` follows the number directly; other units follow after a space. */
export function withUnit(number: string, unit = ''): string {
  return unit === '' || unit.startsWith('/') ? `${number}${unit}` : `${number} ${unit}`;
}

export function figuresOf({ figures }: Pick<Result, 'figures'>): string[] {
  return [...new Set(Object.values(figures).flatMap((all) => Object.keys(all)))];
}

/**
 * The ratio of a figure to another contestant's figure of the same name: the median of the ratios of each round, because
 * other load on the machine affects both in a round. Undefined for the other one itself, and if it lacks the figure.
 *
 * @param other default: the limit
 */
export function ratio(
  result: Pick<Result, 'figures' | 'limit'>,
  contestant: string,
  figure: string,
  other: string | undefined = result.limit,
): number | undefined {
  if (other === undefined || contestant === other) return undefined;
  const limits = result.figures[other]?.[figure];
  const ours = result.figures[contestant]?.[figure];
  if (limits === undefined || ours === undefined || limits.length !== ours.length) return undefined;
  return median(ours.map((value, round) => value / (limits[round] ?? Number.NaN)));
}
