/** Keeps rows in place while the user reads them. */
import { useEffect, useMemo, useRef } from 'react';

/**
 * While the user reads, rows are updated in place, and new rows above them are only counted. Otherwise all rows are shown.
 *
 * @param isReading whether the user has scrolled, selected or focused rows
 */
export function useHeldRows<Row>(
  rows: readonly Row[],
  { idOf, isReading }: { idOf: (row: Row) => string; isReading: boolean },
): { shown: readonly Row[]; waiting: number } {
  const held = useRef<readonly Row[]>(rows);
  const name = useRef(idOf);
  // With 100,000 rows this is too slow for every move of the focus.
  const result = useMemo(
    () => (isReading ? hold(held.current, rows, name.current) : { shown: rows, waiting: 0 }),
    [rows, isReading],
  );
  useEffect(() => {
    held.current = result.shown;
    name.current = idOf;
  });
  return result;
}

/** The shown rows, updated, and new rows below them. A row that was removed stays as it was. */
export function hold<Row>(
  held: readonly Row[],
  rows: readonly Row[],
  idOf: (row: Row) => string,
): { shown: readonly Row[]; waiting: number } {
  if (held === rows || held.length === 0) return { shown: rows, waiting: 0 };
  const now = new Map(rows.map((row) => [idOf(row), row]));
  const known = new Set(held.map(idOf));
  const lastKnown = rows.findLastIndex((row) => known.has(idOf(row)));
  const below = lastKnown < 0 ? [] : rows.slice(lastKnown + 1);
  const waiting = rows.length - below.length - rows.filter((row) => known.has(idOf(row))).length;
  return { shown: [...held.map((row) => now.get(idOf(row)) ?? row), ...below], waiting };
}
