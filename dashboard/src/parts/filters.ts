/** Filters in the URL, so that they survive a reload and the back button and can be shared as a link. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';

export interface Filters<Name extends string> {
  /** By name; several values of one name are comma-separated. A missing name filters nothing. */
  values: { readonly [name in Name]?: string };
  /** Undefined or an empty string removes a filter; filters that are not named stay. */
  set: (changes: { readonly [name in Name]?: string | undefined }) => void;
  clear: () => void;
  isFiltered: boolean;
}

/** The filters of a page, by their parameters in the URL. */
export function useFilters<Name extends string>(...names: Name[]): Filters<Name> {
  const search: Record<string, string | undefined> = useSearch({ strict: false });
  const navigate = useNavigate();
  const set = useCallback(
    (changes: { readonly [name in Name]?: string | undefined }) =>
      void navigate({
        to: '.',
        search: (before: Record<string, string | undefined>) => ({ ...before, ...changes }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  const values: { [name in Name]?: string } = {};
  for (const name of names) {
    const value = search[name];
    if (value !== undefined && value !== '') values[name] = value;
  }
  return {
    values,
    set,
    clear: () =>
      set(Object.fromEntries(names.map((name) => [name, undefined])) as { [name in Name]?: undefined }),
    isFiltered: Object.keys(values).length > 0,
  };
}

/** The values of a filter that takes several; undefined if it is not set. */
export function choices<T extends string>(value: string | undefined): T[] | undefined {
  return value === undefined ? undefined : (value.split(',') as T[]);
}

/** Every value is a string, without the router's JSON encoding: `?state=failed,canceled&q=ada`. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== '') pairs.set(name, String(value));
  }
  const text = pairs.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  return text === '' ? '' : `?${text}`;
}

/** Options of the time filter, whose values appear in the URL. */
export const PERIODS = [
  { value: '1h', label: 'Last hour', ms: 3_600_000 },
  { value: '24h', label: 'Last 24 hours', ms: 86_400_000 },
  { value: '7d', label: 'Last 7 days', ms: 7 * 86_400_000 },
  { value: '30d', label: 'Last 30 days', ms: 30 * 86_400_000 },
];

/** When a period starts, in ISO 8601; constant while the page is mounted. */
export function useSince(period: string | undefined): string | undefined {
  return useMemo(() => sinceOf(period, Date.now()), [period]);
}

/** Rounded down to the minute, so that equal filters share one cached query. */
export function sinceOf(period: string | undefined, nowMs: number): string | undefined {
  const ms = PERIODS.find(({ value }) => value === period)?.ms;
  return ms === undefined ? undefined : new Date(Math.floor((nowMs - ms) / 60_000) * 60_000).toISOString();
}
