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
import { toIso } from '../std/clock.ts';
import { isoTime } from '../std/shape.ts';

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
    buckets.push({ start: toIso(start), ...shownCounts(kind, counts) });
  }
  const countedUntil = toIso(read.countedUntil);
  return { by: period, from: toIso(from), to: toIso(until), countedUntil, buckets };
}

function shownCounts(kind: UsageKind, counts: UsageCounts) {
  const { finished, failed, canceled, added, changed, removed, delivered, failedAttempts, dead } = counts;
  const ofWorkflows = { jobs: { finished, failed, canceled }, records: { added, changed, removed } };
  const latencyMs = {
    p50: latencyPercentile(counts.latency, 0.5),
    p95: latencyPercentile(counts.latency, 0.95),
  };
  const ofWebhooks = { deliveries: { delivered, failedAttempts, dead, latencyMs } };
  return { ...(kind === 'webhook' ? {} : ofWorkflows), ...(kind === 'workflow' ? {} : ofWebhooks) };
}

/** An object with these fields, all of one schema. */
function all(names: readonly string[], schema: object, description: string) {
  const properties = Object.fromEntries(names.map((name) => [name, schema]));
  return { type: 'object', description, required: names, properties };
}

const count = { type: 'integer' };
const milliseconds = {
  type: ['integer', 'null'],
  description: 'Milliseconds; null when nothing was delivered',
};

export const usageSchema = {
  type: 'object',
  required: ['by', 'from', 'to', 'countedUntil', 'buckets'],
  properties: {
    by: { enum: USAGE_PERIODS },
    from: isoTime,
    to: isoTime,
    countedUntil: { ...isoTime, description: 'All that had happened by then is counted' },
    buckets: {
      type: 'array',
      items: {
        type: 'object',
        required: ['start'],
        properties: {
          start: isoTime,
          jobs: all(['finished', 'failed', 'canceled'], count, 'That ended; not of a webhook'),
          records: all(['added', 'changed', 'removed'], count, 'By jobs that finished; not of a webhook'),
          deliveries: {
            type: 'object',
            description: 'Not of a workflow',
            required: ['delivered', 'failedAttempts', 'dead', 'latencyMs'],
            properties: {
              delivered: count,
              failedAttempts: count,
              dead: { type: 'integer', description: 'Given up' },
              latencyMs: all(
                ['p50', 'p95'],
                milliseconds,
                'How long the endpoints took to take what was delivered, to some 10 %',
              ),
            },
          },
        },
      },
    },
  },
  examples: [
    {
      by: 'hour',
      from: '2026-11-21T02:00:00.000Z',
      to: '2026-11-21T03:00:00.000Z',
      countedUntil: '2026-11-21T02:58:40.000Z',
      buckets: [
        {
          start: '2026-11-21T02:00:00.000Z',
          jobs: { finished: 12, failed: 1, canceled: 0 },
          records: { added: 40, changed: 7, removed: 2 },
          deliveries: { delivered: 30, failedAttempts: 2, dead: 0, latencyMs: { p50: 34, p95: 180 } },
        },
      ],
    },
  ],
};
