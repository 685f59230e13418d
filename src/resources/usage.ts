/** Usage as callers see it: every hour or day of a time span, including empty ones. */
import {
  addUsage,
  latencyPercentile,
  noUsage,
  PERIOD_MS,
  USAGE_PERIODS,
  type UsageCounts,
  type UsageKind,
  type UsagePeriod,
} from '../model/usage.ts';
import { choice, integer, list, nullable, object, optional, time, withExample } from '../std/shape.ts';
import { QUEUED } from './examples.ts';

const milliseconds = nullable(integer('Milliseconds; null when nothing was delivered'));

export const usageResource = withExample(
  object({
    by: choice(USAGE_PERIODS),
    from: time(),
    to: time(),
    countedUntil: time('All that had happened by then is counted'),
    buckets: list(
      object({
        start: time(),
        jobs: optional(
          object(
            { finished: integer(), failed: integer(), canceled: integer() },
            'That ended; not of a webhook',
          ),
        ),
        records: optional(
          object(
            { added: integer(), changed: integer(), removed: integer() },
            'By jobs that finished; not of a webhook',
          ),
        ),
        deliveries: optional(
          object(
            {
              delivered: integer(),
              failedAttempts: integer(),
              dead: integer('Given up'),
              latencyMs: object(
                { p50: milliseconds, p95: milliseconds },
                'How long the endpoints took to take what was delivered, to some 10 %',
              ),
            },
            'Not of a workflow',
          ),
        ),
      }),
    ),
  }),
  {
    by: 'hour',
    from: QUEUED,
    to: '2026-11-21T03:00:00.000Z',
    countedUntil: '2026-11-21T02:58:40.000Z',
    buckets: [
      {
        start: QUEUED,
        jobs: { finished: 12, failed: 1, canceled: 0 },
        records: { added: 40, changed: 7, removed: 2 },
        deliveries: { delivered: 30, failedAttempts: 2, dead: 0, latencyMs: { p50: 34, p95: 180 } },
      },
    ],
  },
);

/** From the start of the first period to the end of the last, in epoch milliseconds. */
export interface Span {
  period: UsagePeriod;
  from: number;
  until: number;
}

export function shownUsage(
  kind: UsageKind,
  { period, from, until }: Span,
  read: { countedUntil: number; periods: (Partial<UsageCounts> & { start: number })[] },
) {
  const counted = new Map(read.periods.map(({ start, ...counts }) => [start, counts]));
  const buckets = [];
  for (let start = from; start < until; start += PERIOD_MS[period]) {
    const counts = noUsage();
    addUsage(counts, counted.get(start) ?? {});
    const latencyMs = {
      p50: latencyPercentile(counts.latency, 0.5),
      p95: latencyPercentile(counts.latency, 0.95),
    };
    buckets.push({
      start,
      ...(kind === 'webhook' ? {} : { jobs: counts, records: counts }),
      ...(kind === 'workflow' ? {} : { deliveries: { ...counts, latencyMs } }),
    });
  }
  return usageResource.of({ by: period, from, to: until, countedUntil: read.countedUntil, buckets });
}
