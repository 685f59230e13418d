/**
 * The registry of this process's metrics, in Prometheus's format. To add a metric, call a method of `Metrics` and keep
 * the function that it returns. Names start with `flowhook_` and end with the unit, or with `_total` for a counter:
 *
 *     const refused = metrics.counter({ name: 'flowhook_rate_limited_total', help: 'Requests …', labels: ['by'] });
 *     refused({ by: 'address' });
 *     metrics.gauge({ name: 'flowhook_streams_open', help: 'Streams …', read: () => streams.size });
 *
 * Labels must have a limited number of values: no workflow, team, key, URL, or text chosen by users.
 */
import { within } from '../std/clock.ts';

type Labels = Readonly<Record<string, string | number>>;

interface Described {
  name: string;
  help: string;
  labels?: readonly string[];
}

/** An entry in the list of metrics in docs/reference. */
interface Listed extends Required<Described> {
  kind: 'counter' | 'gauge' | 'histogram';
  /** The current values, one per line. */
  lines(): string[];
}

/** One value of a metric that has labels. */
interface Sample {
  labels: Labels;
  value: number;
}

/** Increments a counter; default: by 1. */
type Count = (labels?: Labels, by?: number) => void;
/** Records a value in one series of a histogram. */
export type Observe = (value: number) => void;
/**
 * Returns the last value of a source; undefined before the first read, and after a read that failed or took too long.
 */
type Latest<T> = () => T | undefined;

/**
 * After a read, a source rests at least this many times as long as the read took, so that slow sources are read less
 * often.
 */
const REST_FACTOR = 20;

interface Source {
  refresh(): Promise<void>;
}

export class Metrics {
  readonly #sources: Source[] = [];
  readonly #list: Listed[] = [];

  /** All metrics, in the order in which they were created. */
  get list(): readonly Listed[] {
    return this.#list;
  }

  /** The content type of `text`. */
  readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';

  counter({ name, help, labels = [] }: Described): Count {
    const values = new Map<string, number>();
    if (labels.length === 0) values.set('', 0);
    const lines = () => [...values].map(([series, value]) => `${name}${series} ${value}`);
    this.#list.push({ name, help, labels, kind: 'counter', lines });
    return (of = {}, by = 1) => {
      const series = inBraces(labelList(of));
      values.set(series, (values.get(series) ?? 0) + by);
    };
  }

  /**
   * Returns a function that finds the series with the given labels. Keep the series where values are frequent.
   *
   * @param options.buckets upper bounds, ascending
   */
  histogram(options: Described & { buckets: readonly number[] }): (labels?: Labels) => Observe {
    const { name, help, labels = [], buckets } = options;
    const all = new Map<string, Distribution>();
    const lines = () => [...all].flatMap(([series, one]) => one.lines(name, series));
    this.#list.push({ name, help, labels, kind: 'histogram', lines });
    const find = (of: Labels = {}) => {
      const series = labelList(of);
      const found = all.get(series) ?? new Distribution(buckets);
      all.set(series, found);
      return found.observe;
    };
    if (labels.length === 0) find();
    return find;
  }

  /**
   * Adds a metric whose value is read at each scrape. The read must be cheap; use a `source` for expensive values.
   *
   * @param options.read returns undefined to omit the metric from this scrape
   * @param options.grows exposes the value as a counter
   */
  gauge(options: Described & { read: () => number | readonly Sample[] | undefined; grows?: boolean }): void {
    const { name, help, labels = [], read, grows = false } = options;
    const lines = () => {
      const value = read() ?? [];
      const samples = typeof value === 'number' ? [{ labels: {}, value }] : value;
      return samples.map((one) => `${name}${inBraces(labelList(one.labels))} ${one.value}`);
    };
    this.#list.push({ name, help, labels, kind: grows ? 'counter' : 'gauge', lines });
  }

  /**
   * Adds an expensive read that several gauges share. The read runs before the response to a scrape.
   *
   * @param options.keepMs how long a value is reused
   * @param options.withinMs how long a scrape waits for the read. A value that arrives later is used for the next
   *   scrape
   */
  source<T>(options: { read: () => Promise<T>; keepMs: number; withinMs: number }): Latest<T> {
    const { read, keepMs, withinMs } = options;
    let latest: T | undefined;
    let againAt = Number.NEGATIVE_INFINITY;
    let reading: Promise<void> | undefined;
    const start = async () => {
      const startedAt = performance.now();
      try {
        latest = await read();
      } catch {
        // The error is not logged here, because the reader logs its own errors, and the missing gauges show the
        // failure.
        latest = undefined;
      }
      const nowMs = performance.now();
      againAt = nowMs + Math.max(keepMs, REST_FACTOR * (nowMs - startedAt));
      reading = undefined;
    };
    this.#sources.push({
      async refresh() {
        if (performance.now() < againAt) return;
        reading ??= start();
        await within(withinMs, reading, () => {
          latest = undefined;
        });
      },
    });
    return () => latest;
  }

  /** All metrics in the Prometheus text format 0.0.4. */
  async text(): Promise<string> {
    await Promise.all(this.#sources.map((source) => source.refresh()));
    const parts = this.#list.map(({ name, help, kind, lines }) =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines()].join('\n'),
    );
    return `${parts.join('\n\n')}\n`;
  }
}

/** The values of one series of a histogram. */
class Distribution {
  readonly #bounds: readonly number[];
  /** How many values each bucket has. The last bucket has no bound. */
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  readonly observe: Observe = (value) => {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += value;
  };

  lines(name: string, series: string): string[] {
    let count = 0;
    const buckets = this.#counts.map((one, at) => {
      count += one;
      const le = `le="${this.#bounds[at] ?? '+Inf'}"`;
      return `${name}_bucket${inBraces(series === '' ? le : `${le},${series}`)} ${count}`;
    });
    return [
      ...buckets,
      `${name}_sum${inBraces(series)} ${this.#sum}`,
      `${name}_count${inBraces(series)} ${count}`,
    ];
  }
}

/**
 * The labels of a series in the text format, which escapes quotes, backslashes and line breaks as JSON does. No value of
 * a label may contain other control characters.
 */
function labelList(labels: Labels): string {
  let list = '';
  for (const name in labels)
    list += `${list === '' ? '' : ','}${name}=${JSON.stringify(String(labels[name]))}`;
  return list;
}

function inBraces(list: string): string {
  return list === '' ? '' : `{${list}}`;
}
