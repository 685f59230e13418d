/** Stable row keys for the virtualizer. */
import { useCallback, useEffect, useRef } from 'react';

/** The function changes only with the rows: for a new function the virtualizer would measure every row again. */
export function useRowName<Row>(rows: readonly Row[], idOf: (row: Row) => string): (index: number) => string {
  const latest = useRef(idOf);
  useEffect(() => {
    latest.current = idOf;
  });
  return useCallback(
    (index) => {
      const row = rows[index];
      return row === undefined ? String(index) : latest.current(row);
    },
    [rows],
  );
}
