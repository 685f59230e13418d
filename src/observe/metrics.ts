/**
 * The numbers of this process, as Prometheus reads them. To count something of your own, take a `Metrics` and keep what
 * it gives; names begin with `flowhook_`, and end with the unit, or with `_total` for what only grows:
 *
 *     const refused = metrics.counter({ name: 'flowhook_rate_limited_total', help: 'Requests …', labels: ['by'] });
 *     refused({ by: 'address' });
 *     metrics.gauge({ name: 'flowhook_streams_open', help: 'Streams …', read: () => streams.size });
 *
 * No label may take values without bound: no workflow, team, key, URL, or text that somebody else chose.
 */
import type { Counter as CounterOf, Gauge as GaugeOf } from 'prom-client';
import { Counter, Gauge, Histogram, Registry } from './prometheus.ts';

type Labels = Readonly<Record<string, string | number>>;

/** What a metric is called, what it tells, and by what it is divided. */
export interface Described {
  name: string;
  help: string;
  labels?: readonly string[];
}

/** A metric as the reference lists it. */
export interface Listed extends Required<Described> {
  kind: 'counter' | 'gauge' | 'histogram';
}

/** One value where there are several. */
export interface Sample {
  labels: Labels;
  value: number;
}

/** Counts; by 1 unless told. */
export type Count = (labels?: Labels, by?: number) => void;
/** Takes down a value. */
export type Observe = (value: number, labels?: Labels) => void;
/** What was read last, unless that failed, took too long or was not asked for yet. */
export type Latest<T> = () => T | undefined;

/** What takes long is read more rarely: it rests so many times as long. */
const REST_SHARE = 20;

interface Source {
  refresh(): Promise<void>;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #sources: Source[] = [];
  readonly #list: Listed[] = [];

  /** All there are, in the order in which they were made. */
  get list(): readonly Listed[] {
    return this.#list;
  }

  /** The form that `text` has. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  counter({ name, help, labels = [] }: Described): Count {
    this.#list.push({ name, help, labels, kind: 'counter' });
    const counter = new Counter({ name, help, labelNames: [...labels], registers: [this.#registry] });
    return (values = {}, by = 1) => counter.inc(values, by);
  }

  /** @param options.buckets upper bounds, rising */
  histogram({ name, help, labels = [], buckets }: Described & { buckets: readonly number[] }): Observe {
    this.#list.push({ name, help, labels, kind: 'histogram' });
    const histogram = new Histogram({
      name,
      help,
      labelNames: [...labels],
      buckets: [...buckets],
      registers: [this.#registry],
    });
    return (value, values = {}) => histogram.observe(values, value);
  }

  /**
   * What is looked up at each scrape, which must cost next to nothing: what costs more is read by a `source`.
   *
   * @param options.read nothing leaves it out of this scrape
   * @param options.grows it is a counter that somebody else keeps
   */
  gauge(options: Described & { read: () => number | readonly Sample[] | undefined; grows?: boolean }): void {
    const { name, help, labels = [], read, grows = false } = options;
    this.#list.push({ name, help, labels, kind: grows ? 'counter' : 'gauge' });
    const described = { name, help, labelNames: [...labels], registers: [this.#registry] };
    const show = (metric: GaugeOf | CounterOf) => {
      const value = read();
      metric.reset();
      // A reset leaves 0 behind where there are no labels.
      if (value === undefined) metric.remove({});
      else if (typeof value === 'number') metric.inc(value);
      else for (const sample of value) metric.inc({ ...sample.labels }, sample.value);
    };
    if (grows) {
      new Counter({
        ...described,
        collect() {
          show(this);
        },
      });
    } else {
      new Gauge({
        ...described,
        collect() {
          show(this);
        },
      });
    }
  }

  /**
   * Something that is read before a scrape is answered, once for all gauges that are made of it.
   *
   * @param options.keepMs what is not older is not read again, however many scrape
   * @param options.withinMs a scrape waits for so long at most; one that comes late serves the next
   */
  source<T>(options: { read: () => Promise<T>; keepMs: number; withinMs: number }): Latest<T> {
    const { read, keepMs, withinMs } = options;
    let latest: T | undefined;
    let againAt = Number.NEGATIVE_INFINITY;
    let reading: Promise<void> | undefined;
    const begin = async () => {
      const begunAt = performance.now();
      try {
        latest = await read();
      } catch {
        // The gauges that are missing say so, and whoever failed has a log of its own.
        latest = undefined;
      }
      const nowMs = performance.now();
      againAt = nowMs + Math.max(keepMs, REST_SHARE * (nowMs - begunAt));
      reading = undefined;
    };
    this.#sources.push({
      async refresh() {
        if (performance.now() < againAt) return;
        reading ??= begin();
        if (await isLate(reading, withinMs)) latest = undefined;
      },
    });
    return () => latest;
  }

  /** All of it, in the text format 0.0.4. */
  async text(): Promise<string> {
    await Promise.all(this.#sources.map((source) => source.refresh()));
    return this.#registry.metrics();
  }
}

async function isLate(work: Promise<void>, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), withinMs);
  });
  const isOver = await Promise.race([work.then(() => false), late]);
  clearTimeout(timer);
  return isOver;
}
