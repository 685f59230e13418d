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
import { createRequire } from 'node:module';
import type * as PromClient from 'prom-client';
import type { Counter as CounterOf, Gauge as GaugeOf } from 'prom-client';
import { within } from '../std/clock.ts';

// Only the parts of prom-client that are used are imported. They take 4 ms at start; the whole package takes 45 ms.
const require = createRequire(import.meta.url);

const Registry = require('prom-client/lib/registry.js') as typeof PromClient.Registry;
const Counter = require('prom-client/lib/counter.js') as typeof PromClient.Counter;
const Gauge = require('prom-client/lib/gauge.js') as typeof PromClient.Gauge;
const Histogram = require('prom-client/lib/histogram.js') as typeof PromClient.Histogram;

type Labels = Readonly<Record<string, string | number>>;

interface Described {
  name: string;
  help: string;
  labels?: readonly string[];
}

/** An entry in the list of metrics in docs/reference. */
interface Listed extends Required<Described> {
  kind: 'counter' | 'gauge' | 'histogram';
}

/** One value of a metric that has labels. */
interface Sample {
  labels: Labels;
  value: number;
}

/** Increments a counter; default: by 1. */
type Count = (labels?: Labels, by?: number) => void;
/** Records a value in a histogram. */
type Observe = (value: number, labels?: Labels) => void;
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
  readonly #registry = new Registry();
  readonly #sources: Source[] = [];
  readonly #list: Listed[] = [];

  /** All metrics, in the order in which they were created. */
  get list(): readonly Listed[] {
    return this.#list;
  }

  /** The content type of `text`. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  counter({ name, help, labels = [] }: Described): Count {
    this.#list.push({ name, help, labels, kind: 'counter' });
    const counter = new Counter({ name, help, labelNames: [...labels], registers: [this.#registry] });
    return (values = {}, by = 1) => counter.inc(values, by);
  }

  /** @param options.buckets upper bounds, ascending */
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
   * Adds a metric whose value is read at each scrape. The read must be cheap; use a `source` for expensive values.
   *
   * @param options.read returns undefined to omit the metric from this scrape
   * @param options.grows exposes the value as a counter
   */
  gauge(options: Described & { read: () => number | readonly Sample[] | undefined; grows?: boolean }): void {
    const { name, help, labels = [], read, grows = false } = options;
    this.#list.push({ name, help, labels, kind: grows ? 'counter' : 'gauge' });
    const described = { name, help, labelNames: [...labels], registers: [this.#registry] };
    const show = (metric: GaugeOf | CounterOf) => {
      const value = read();
      metric.reset();
      // A metric without labels has the value 0 after a reset, so it must also be removed.
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
    return this.#registry.metrics();
  }
}
