/** Metrics of the process: CPU, memory, files, event loop delay, exported spans. */
import { readdir } from 'node:fs/promises';
import type { EventLoopDelay } from './event-loop.ts';
import type { Metrics } from './metrics.ts';
import type { Tracing } from './tracing.ts';

const FILES = { keepMs: 5_000, withinMs: 500 };

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
