/** Usage by hour or day, empty buckets included, as the API returns it. */
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

const milliseconds = nullable(integer('Milliseconds. `null` if nothing was delivered'));

export const usageResource = withExample(
  object({
    by: choice(USAGE_PERIODS),
    from: time('Start of the first bucket'),
    to: time('End of the last bucket'),
    countedUntil: time('Time up to which everything is counted'),
    buckets: list(
      object({
        start: time(),
        jobs: optional(
          object(
            { finished: integer(), failed: integer(), canceled: integer() },
            'Jobs that ended in this period. Omitted from the usage of a webhook',
          ),
        ),
        records: optional(
          object(
            { added: integer(), changed: integer(), removed: integer() },
            'Records changed by jobs that finished in this period. Omitted from the usage of a webhook',
          ),
        ),
        deliveries: optional(
          object(
            {
              delivered: integer(),
              failedAttempts: integer('Number of failed attempts, whether or not they were retried'),
              dead: integer('Number of deliveries that became `dead`'),
              latencyMs: object(
                { p50: milliseconds, p95: milliseconds },
                'Response times of the endpoints for successful deliveries, estimated from a histogram with the bounds ' +
                  '1, 2, 5, 10, 20, 50 ms and so on',
              ),
            },
            'Deliveries in this period. Omitted from the usage of a workflow',
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

/** A time span in epoch milliseconds, from the start of the first bucket to the end of the last. */
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
