/** The periods by which lists are filtered, by their names in the URL. */
import { useMemo } from 'react';

export const PERIODS = [
  { value: '1h', label: 'Last hour', ms: 3_600_000 },
  { value: '24h', label: 'Last 24 hours', ms: 86_400_000 },
  { value: '7d', label: 'Last 7 days', ms: 7 * 86_400_000 },
  { value: '30d', label: 'Last 30 days', ms: 30 * 86_400_000 },
];

/** When a period began, in ISO 8601; constant while the page is mounted. */
export function useSince(period: string | undefined): string | undefined {
  return useMemo(() => sinceOf(period, Date.now()), [period]);
}

/** By the minute, so that two who ask the same within it are answered by one query. */
export function sinceOf(period: string | undefined, nowMs: number): string | undefined {
  const ms = PERIODS.find(({ value }) => value === period)?.ms;
  return ms === undefined ? undefined : new Date(Math.floor((nowMs - ms) / 60_000) * 60_000).toISOString();
}
