/** Metrics of the process itself (CPU, memory, files, event loop), named as Prometheus clients commonly name them. */
import { readdir } from 'node:fs/promises';
import type { EventLoopDelay } from './event-loop.ts';
import type { Metrics } from './metrics.ts';

const FILES = { keepMs: 5_000, withinMs: 500 };

/** Our own selection: prom-client's default metrics observe every garbage collection, which costs time. */
export function processMetrics(metrics: Metrics, eventLoop: { read(): EventLoopDelay }): void {
  metrics.gauge({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of this process with all its threads; jobs run in processes of their own.',
    grows: true,
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
  metrics.gauge({
    name: 'process_start_time_seconds',
    help: 'When this process was started, in seconds since 1970.',
    read: () => performance.timeOrigin / 1_000,
  });
  metrics.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory that is resident.',
    read: () => process.memoryUsage.rss(),
  });
  const files = metrics.source({ ...FILES, read: async () => (await readdir('/proc/self/fd')).length });
  metrics.gauge({
    name: 'process_open_fds',
    help: 'Files and connections that are open; on Linux alone.',
    read: files,
  });

  const memory = [
    ['nodejs_heap_size_total_bytes', 'heapTotal', "V8's heap"],
    ['nodejs_heap_size_used_bytes', 'heapUsed', "What is used of V8's heap"],
    ['nodejs_external_memory_bytes', 'external', 'What objects of V8 hold outside of its heap'],
  ] as const;
  for (const [name, field, what] of memory) {
    metrics.gauge({ name, help: `${what}.`, read: () => process.memoryUsage()[field] });
  }
  const delays = [
    ['nodejs_eventloop_lag_p50_seconds', 'p50Ms', 'half of all that was due had to wait for'],
    ['nodejs_eventloop_lag_p99_seconds', 'p99Ms', 'one in a hundred had to wait for'],
    ['nodejs_eventloop_lag_max_seconds', 'maxMs', 'something had to wait for at most'],
  ] as const;
  for (const [name, field, what] of delays) {
    metrics.gauge({
      name,
      help: `What ${what}, in the last whole minute.`,
      read: () => eventLoop.read()[field] / 1_000,
    });
  }
}
