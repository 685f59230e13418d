/** The last 24 hours of a webhook, small enough for a row. */
import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Usage } from 'flowhook-client';
import { count, duration } from '../../parts/quantity.ts';
import { stateColor, tone } from '../../parts/state-badge.tsx';
import { dayUsageQuery } from '../../queries/usage.ts';
import { type Health, healthOf, percent } from './health.ts';

const BAR = 3;
const GAP = 1;
const HEIGHT = 18;

/** Its share of attempts that succeeded, hour by hour below each other what arrived and what failed. */
export function DaySuccess({ webhookId }: { webhookId: string }) {
  const { data: usage } = useQuery(dayUsageQuery({ webhookId }));
  if (usage === undefined)
    return (
      <Text span inherit>
        {' '}
      </Text>
    );
  const health = healthOf(usage);
  return (
    <Group gap="sm" wrap="nowrap" title={words(health)}>
      <Text
        span
        inherit
        className="numbers"
        w={56}
        c={health.success !== null && health.success < 0.9 ? tone('bad') : undefined}
      >
        {health.success === null ? '–' : percent(health.success)}
      </Text>
      <Bars usage={usage} label={words(health)} />
    </Group>
  );
}

/** How long its answers take. */
export function DayLatency({ webhookId }: { webhookId: string }) {
  const { data: usage } = useQuery(dayUsageQuery({ webhookId }));
  const p95Ms = usage === undefined ? null : healthOf(usage).p95Ms;
  return <span className="numbers">{p95Ms === null ? '–' : duration(p95Ms)}</span>;
}

function Bars({ usage, label }: { usage: Usage; label: string }) {
  const hours = usage.buckets.slice(-24).map(({ start, deliveries }) => ({
    start,
    good: deliveries?.delivered ?? 0,
    bad: deliveries?.failedAttempts ?? 0,
  }));
  const most = Math.max(1, ...hours.map(({ good, bad }) => good + bad));
  // One failure among thousands is still seen.
  const height = (value: number) => (value === 0 ? 0 : Math.max(2, (HEIGHT * value) / most));
  return (
    <svg width={hours.length * (BAR + GAP) - GAP} height={HEIGHT} role="img" aria-label={label}>
      <line
        x1={0}
        x2="100%"
        y1={HEIGHT - 0.5}
        y2={HEIGHT - 0.5}
        stroke="var(--mantine-color-default-border)"
      />
      {hours.map(({ start, good, bad }, index) => {
        const x = index * (BAR + GAP);
        const failed = height(bad);
        const arrived = Math.min(height(good), HEIGHT - failed);
        return (
          <g key={start}>
            <rect x={x} y={HEIGHT - arrived} width={BAR} height={arrived} fill={stateColor('delivered')} />
            <rect x={x} y={HEIGHT - arrived - failed} width={BAR} height={failed} fill={stateColor('dead')} />
          </g>
        );
      })}
    </svg>
  );
}

function words({ delivered, failedAttempts, dead }: Health): string {
  return `Last 24 hours: ${count(delivered)} delivered, ${count(failedAttempts)} failed attempts, ${count(dead)} given up`;
}
