/** Metrics of the process: CPU, memory, files, event loop delay, exported spans. */
import { readdir } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';
import type { Tracing } from './tracing.ts';

const FILES = { keepMs: 5_000, withinMs: 500 };

/** prom-client's default metrics are not used, because they observe every garbage collection, which takes time. */
export function processMetrics(metrics: Metrics, eventLoop: { read(): EventLoopDelay }): void {
  metrics.gauge({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of this process and all its threads. Jobs run in separate processes.',
    grows: true,
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
  metrics.gauge({
    name: 'process_start_time_seconds',
    help: 'Start time of this process, in seconds since 1970.',
    read: () => performance.timeOrigin / 1_000,
  });
  metrics.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory.',
    read: () => process.memoryUsage.rss(),
  });
  const files = metrics.source({ ...FILES, read: async () => (await readdir('/proc/self/fd')).length });
  metrics.gauge({
    name: 'process_open_fds',
    help: 'Open files and connections (Linux only).',
    read: files,
  });

  const memory = [
    ['nodejs_heap_size_total_bytes', 'heapTotal', "Size of V8's heap."],
    ['nodejs_heap_size_used_bytes', 'heapUsed', "Used part of V8's heap."],
    ['nodejs_external_memory_bytes', 'external', "Memory that V8's objects use outside of its heap."],
  ] as const;
  for (const [name, field, help] of memory) {
    metrics.gauge({ name, help, read: () => process.memoryUsage()[field] });
  }
  const delays = [
    ['nodejs_eventloop_lag_p50_seconds', 'p50Ms', 'Median'],
    ['nodejs_eventloop_lag_p99_seconds', 'p99Ms', '99th percentile of the'],
    ['nodejs_eventloop_lag_max_seconds', 'maxMs', 'Maximum'],
  ] as const;
  for (const [name, field, what] of delays) {
    metrics.gauge({
      name,
      help: `${what} event loop delay in the last full minute.`,
      read: () => eventLoop.read()[field] / 1_000,
    });
  }
}

type Histogram = ReturnType<typeof monitorEventLoopDelay>;

/** A delay is underestimated by up to this much. The monitor wakes the process up this often, even if it is idle. */
const RESOLUTION_MS = 20;
const WINDOW_MS = 60_000;

/** Event loop delay: how long due timers had to wait, in milliseconds. */
export interface EventLoopDelay {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

/**
 * Measures the event loop delay continuously and reports the last full minute. During the first minute, it reports the
 * values measured so far.
 */
export class EventLoopMonitor {
  #histogram: Histogram | undefined;
  #timer: NodeJS.Timeout | undefined;
  #last: EventLoopDelay | undefined;

  start(): void {
    if (this.#histogram !== undefined) return;
    const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    histogram.enable();
    this.#histogram = histogram;
    this.#timer = setInterval(() => {
      this.#last = delayOf(histogram);
      histogram.reset();
    }, WINDOW_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#histogram?.disable();
    this.#histogram = undefined;
    this.#last = undefined;
  }

  read(): EventLoopDelay {
    return (
      this.#last ??
      (this.#histogram === undefined ? { p50Ms: 0, p99Ms: 0, maxMs: 0 } : delayOf(this.#histogram))
    );
  }
}

/** The histogram contains the time between two ticks of a timer, so the interval of the timer is subtracted. */
function delayOf(histogram: Histogram): EventLoopDelay {
  const ms = (nanoseconds: number) =>
    histogram.count === 0 ? 0 : Math.max(0, Math.round((nanoseconds / 1e6 - RESOLUTION_MS) * 100) / 100);
  return {
    p50Ms: ms(histogram.percentile(50)),
    p99Ms: ms(histogram.percentile(99)),
    maxMs: ms(histogram.max),
  };
}

/** The metric is registered even without tracing, so that the reference lists it. Without tracing it has no values. */
export function traceMetrics(metrics: Metrics, tracing: Pick<Tracing, 'spans'> | undefined): void {
  metrics.gauge({
    name: 'flowhook_trace_spans_total',
    help: 'Trace spans by result: `sent`, or `dropped` because their receiver was unavailable or too many spans were waiting. Missing if tracing is off.',
    labels: ['result'],
    grows: true,
    read: () =>
      Object.entries(tracing?.spans ?? {}).map(([result, value]) => ({ labels: { result }, value })),
  });
}
