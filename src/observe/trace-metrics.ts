/** The metric of exported spans. */
import type { Metrics } from './metrics.ts';
import type { Tracing } from './tracing.ts';

/** Always registered, so that the reference lists it; without tracing it has no values. */
export function traceMetrics(metrics: Metrics, tracing: Pick<Tracing, 'spans'> | undefined): void {
  metrics.gauge({
    name: 'flowhook_trace_spans_total',
    help: 'Spans, where traces are kept, by what became of them: `sent`, or `dropped`, because their receiver was away or too many waited.',
    labels: ['result'],
    grows: true,
    read: () =>
      Object.entries(tracing?.spans ?? {}).map(([result, value]) => ({ labels: { result }, value })),
  });
}
