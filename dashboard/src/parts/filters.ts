/** Filters are kept in the URL: they survive a reload and the back button, and can be shared as a link. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';

export interface Filters<Name extends string> {
  /** What is chosen; a name that is not there filters nothing. Several choices of one name are joined by commas. */
  values: { readonly [name in Name]?: string };
  /** Chooses; undefined or an empty text takes a filter away. Others stay. */
  set: (changes: { readonly [name in Name]?: string | undefined }) => void;
  clear: () => void;
  /** Whether any is set: an empty list then offers to clear them. */
  isFiltered: boolean;
}

/** The filters of a page, by their names in the address. */
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

/** The choices of a filter of which several may be chosen; undefined: none. */
export function choices<T extends string>(value: string | undefined): T[] | undefined {
  return value === undefined ? undefined : (value.split(',') as T[]);
}

/** The address's own letters: `?state=failed,canceled&q=ada`, every value a text. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

/** The reverse. */
export function stringifySearch(search: Record<string, unknown>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== '') pairs.set(name, String(value));
  }
  const text = pairs.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  return text === '' ? '' : `?${text}`;
}

/** The periods by which lists are filtered, by their names in the URL. */
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
