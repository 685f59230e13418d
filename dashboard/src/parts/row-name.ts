/** What the virtualizer knows rows by. */
import { useCallback, useEffect, useRef } from 'react';

/** A function that is another one only for other rows: for another function every row would be placed anew. */
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
